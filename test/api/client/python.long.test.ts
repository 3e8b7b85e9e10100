import { execFile } from 'node:child_process'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { examples, sampleIds } from '#api/reference/examples.ts'
import { version } from '#api/edge/version.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey, startJobWorkers } from '#test/support/start/api.ts'
import { LoginClient, registerClient, startOAuthService } from '#test/support/start/oauth.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import {
  findPythons,
  installWheel,
  noPython,
  runUnittest,
  type Python,
} from '#test/support/start/python.ts'

const folder = fileURLToPath(new URL('../../../api/client/python', import.meta.url))
const pythons = await findPythons()
const modules = ['every_operation', 'retries', 'client', 'adapters', 'readme'].map(
  name => `tests.test_${name}`,
)

/** The requests that the reference shows, and the names of all operations. */
const describeOperations = () => ({
  requests: examples,
  sampleIds,
  operations: Object.keys(contractDocument.endpoints),
})

if (pythons.length === 0) t.test('the client of Python', { skip: noPython }, async () => {})
else await startService()

async function startService(): Promise<void> {
  const provider = await startModelProvider(t)
  const { backend, base } = await startOAuthService(t, { env: provider.env })
  await startJobWorkers(backend)
  const file = join(
    t.testdir({ 'examples.json': JSON.stringify(describeOperations()) }),
    'examples.json',
  )
  for (const python of pythons) {
    t.test(`Python ${python.version}: the client against a running service`, async t => {
      const env = {
        BASE_URL: base,
        EXAMPLES: file,
        MEMORY_KEY: await buildKey(backend),
        MODEL_KEY: await buildKey(backend),
        ADMIN_KEY: (await buildAdmin(backend)).key,
        OPERATOR_KEY: (await buildAdmin(backend, operatorEmail(backend.config))).key,
        LEAVING_KEY: await buildLeavingKey(),
        OPENAI_API_KEY: providerKey('openai'),
        ANTHROPIC_API_KEY: providerKey('anthropic'),
        GEMINI_API_KEY: providerKey('google'),
      }
      await new LoginClient(base, await registerClient(base)).login({ key: env.MEMORY_KEY })
      await reportTests(t, python, env)
    })

    t.test(`Python ${python.version}: the installed wheel has all files and works`, async t => {
      const copied = t.testdir({})
      const isSource = (path: string) => !/(?:__pycache__|build|egg-info|\/vault\.py)$/.test(path)
      const source = join(copied, 'source')
      cpSync(folder, source, { recursive: true, filter: isSource })
      const target = join(copied, 'target')
      const missing = await installWheel(python, source, target)
      if (missing) return t.pass('wheel', { skip: missing })
      const files = (of: string) =>
        readdirSync(join(of, 'memory_vault'), { recursive: true, encoding: 'utf8' })
          .filter(name => /\.(?:py|typed)$/.test(name))
          .toSorted()
      t.same(files(target), files(source))
      t.ok(files(target).includes('generated/vault.py') && files(target).includes('py.typed'))
      t.ok(readdirSync(target).includes(`memory_vault_client-${version}.dist-info`))
      const env = { PYTHONPATH: target, BASE_URL: base, MEMORY_KEY: await buildKey(backend) }
      const { stdout } = await promisify(execFile)(python.command, ['-c', program], {
        cwd: copied,
        env,
      })
      t.match(stdout, /target\/memory_vault.*\nAda turns nine in May\.\nAda turns nine in May\.\n/)
    })
  }

  /** The email of the account that the examples erase; a receipt follows, so the next run can have it. */
  function buildLeavingKey(): Promise<string> {
    const { email } = examples.eraseAccount!.body as { email: string }
    return buildKey(backend, email)
  }
}

/** A program of a person who has installed the package. */
const program = `
import asyncio, os, memory_vault
from memory_vault import AsyncVault, Vault

address = os.environ["BASE_URL"], os.environ["MEMORY_KEY"]
print(memory_vault.__file__)
with Vault(*address) as vault:
    vault.ingest(messages=[{"role": "user", "content": "Ada turns nine in May."}], wait=True)
    print(vault.search(query="how old is Ada?", limit=1)["memories"][0]["content"])

async def main():
    async with AsyncVault(*address) as vault:
        found = await vault.search(query="how old is Ada?", limit=1)
        print(found["memories"][0]["content"])

asyncio.run(main())
`

/** Every test of Python is an assertion here, and none is lost. */
async function reportTests(t: Test, python: Python, env: Record<string, string>): Promise<void> {
  const { count, outcomes, output, code } = await runUnittest(python, modules, { cwd: folder, env })
  for (const { test, outcome, text } of outcomes) {
    if (outcome === 'skipped') t.pass(test, { skip: text })
    else t.equal(outcome === 'failed' ? text : '', '', test)
  }
  t.ok(count >= 40, `${count} tests`)
  t.equal(outcomes.length, count, 'each has an outcome')
  t.equal(code, 0, `Python ends without a fault: ${code === 0 ? '' : output}`)
}

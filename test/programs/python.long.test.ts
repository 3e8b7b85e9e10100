import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { installPython } from '#test/programs/install.ts'
import { pythonPrograms } from '#test/programs/python-programs.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { listen } from '#test/support/listen.ts'
import { providerKey, startModelProvider } from '#test/support/model-provider.ts'

/** Names one program. */
const only = process.env.PROGRAM
t.setTimeout(1_500_000)
const source = fileURLToPath(new URL('../../api/client/python', import.meta.url))
const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const ownerKey = await buildKey(backend)
const seen = await listen(
  t,
  createServer((_, response) => {
    const bodies = provider.requests.map(({ body }) => body.toString())
    provider.clearRequests()
    response.end(JSON.stringify(bodies))
  }),
)
const client = join(t.testdir({}), 'client')
cpSync(source, client, { recursive: true })

const environment = {
  PATH: process.env.PATH,
  BASE_URL: base,
  SEEN: seen,
  ...Object.fromEntries(Object.entries(provider.env)),
  OPENAI_API_KEY: providerKey('openai'),
  ANTHROPIC_API_KEY: providerKey('anthropic'),
  GEMINI_API_KEY: providerKey('google'),
  PYTHONPATH: `${client}:${join(import.meta.dirname, 'python')}`,
  PYTHONDONTWRITEBYTECODE: '1',
  HOME: client,
}

type Outcome = { code: number; output: string; checks: Check[] }
type Check = { check: string; ok: boolean; detail: string }

async function run(python: string, args: string[], env: object): Promise<Outcome> {
  const child = spawn(python, args, { cwd: client, env: { ...environment, ...env } })
  const outcome: Outcome = { code: 0, output: '', checks: [] }
  child.stderr.on('data', (data: Buffer) => (outcome.output += data.toString()))
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)))
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{"check"')) outcome.checks.push(JSON.parse(line) as Check)
    else outcome.output += `${line}\n`
  }
  return { ...outcome, code: await ended }
}

for (const program of pythonPrograms.filter(({ file }) => !only || file.includes(only))) {
  for (const age of ['oldest', 'newest'] as const) {
    await t.test(`${program.name}, ${program[age][0]}`, { timeout: 300_000 }, async t => {
      const installed = await installPython(program[age])
      if ('missing' in installed) return t.pass(installed.missing, { skip: installed.missing })
      const python = join(installed.folder, 'bin/python')
      const file = join(import.meta.dirname, 'python', program.file)
      const env = { OWNER_KEY: ownerKey, RUN: `${crypto.randomUUID()}-` }
      for (const step of ['first', 'again']) tell(t, await run(python, [file, step], env))
    })
  }
}

function tell(t: Test, { code, output, checks }: Outcome): void {
  t.ok(checks.length > 0, `checks were made: ${checks.length > 0 ? '' : output}`)
  for (const { check, ok, detail } of checks) t.ok(ok, ok ? check : `${check}: ${detail}`)
  t.equal(code, 0, `the program ends without a fault: ${code === 0 ? '' : output.slice(-2000)}`)
}

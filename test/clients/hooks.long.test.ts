import { existsSync, readFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { providerKey, providerUrl } from '#test/support/doubles/model-provider.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { respondToProgram } from '#test/support/doubles/program-double.ts'
import { createHome } from '#test/support/start/program-home.ts'

/**
 * Programs with memory by their hooks: `npm run connect -- <client> --memory plugin`, while their models are called
 * past the service. A session is stored, a later one in another clone of the repository is told of it, one in
 * another repository is not, and a skill is offered. AGENT_PROGRAMS is the folder of the programs.
 */

const programs = process.env.AGENT_PROGRAMS
const connect = fileURLToPath(new URL('../../scripts/clients/connect.ts', import.meta.url))
const hooks = fileURLToPath(new URL('../../scripts/hooks.ts', import.meta.url))

type Program = {
  client: string
  program: string
  ask(said: string): string[]
  goOn(said: string): string[]
  env(origin: string): Record<string, string>
  /** A file of the program's configuration that sends its model calls to the double. */
  file?: (origin: string) => [path: string, text: string]
}

const codexFlags = [
  '--skip-git-repo-check',
  '--dangerously-bypass-approvals-and-sandbox',
  '--dangerously-bypass-hook-trust',
]
const claudeFlags = ['--dangerously-skip-permissions']
const openai = { OPENAI_API_KEY: providerKey('openai') }
const table: Program[] = [
  {
    client: 'claude-code',
    program: 'claude',
    ask: said => ['-p', said, ...claudeFlags],
    goOn: said => ['-c', '-p', said, ...claudeFlags],
    env: origin => ({
      ANTHROPIC_BASE_URL: providerUrl(origin, 'anthropic'),
      ANTHROPIC_API_KEY: providerKey('anthropic'),
      IS_SANDBOX: '1',
    }),
  },
  {
    client: 'codex',
    program: 'codex',
    ask: said => ['exec', ...codexFlags, said],
    goOn: said => ['exec', 'resume', '--last', ...codexFlags, said],
    env: () => openai,
    file: origin => [
      '.codex/config.toml',
      `model_provider = "d"\n[model_providers.d]\nname = "d"\nbase_url = "${providerUrl(origin, 'openai')}"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n`,
    ],
  },
  {
    client: 'gemini',
    program: 'gemini',
    ask: said => ['--yolo', '--skip-trust', '-p', said],
    goOn: said => ['--yolo', '--skip-trust', '--resume', 'latest', '-p', said],
    env: origin => ({
      GEMINI_API_KEY: providerKey('google'),
      GOOGLE_GEMINI_BASE_URL: providerUrl(origin, 'google'),
    }),
    file: () => [
      '.gemini/settings.json',
      '{"security": {"auth": {"selectedType": "gemini-api-key"}}}',
    ],
  },
  {
    client: 'qwen',
    program: 'qwen',
    ask: said => ['--yolo', '-p', said],
    goOn: said => ['--yolo', '--continue', '-p', said],
    env: origin => ({
      ...openai,
      OPENAI_BASE_URL: providerUrl(origin, 'openai'),
      OPENAI_MODEL: 'gpt-5',
    }),
    file: () => ['.qwen/settings.json', '{"security": {"auth": {"selectedType": "openai"}}}'],
  },
  {
    client: 'opencode',
    program: 'opencode',
    ask: said => ['run', '--auto', '-m', 'openai/gpt-5', said],
    goOn: said => ['run', '--auto', '-c', '-m', 'openai/gpt-5', said],
    env: () => openai,
    file: origin => [
      '.config/opencode/opencode.json',
      JSON.stringify({
        provider: { openai: { options: { baseURL: providerUrl(origin, 'openai') } } },
      }),
    ],
  },
  {
    client: 'vscode',
    program: 'copilot',
    ask: said => ['-p', said, '--allow-all-tools'],
    goOn: said => ['--continue', '-p', said, '--allow-all-tools'],
    env: origin => ({
      COPILOT_OFFLINE: 'true',
      COPILOT_PROVIDER_BASE_URL: providerUrl(origin, 'openai'),
      COPILOT_PROVIDER_API_KEY: providerKey('openai'),
      COPILOT_PROVIDER_WIRE_API: 'responses',
      COPILOT_MODEL: 'gpt-5.4',
    }),
  },
]
const installed = table.filter(({ program }) => programs && existsSync(join(programs, program)))

const first = 'Remember for later: our staging database is called heron-42.'
const later = 'And which port does it listen on?'
const question = 'What is our staging database called?'

const clone = (name: string) => ({
  '.git': { config: `[remote "origin"]\n\turl = git@h.org:acme/${name}.git\n` },
})

if (installed.length === 0) {
  t.pass(
    'skipped: AGENT_PROGRAMS names no folder with claude, codex, gemini, qwen, opencode or copilot',
  )
} else {
  const { backend, provider, base, newKey } = await startProxyFixture(t)
  await startJobWorkers(backend)
  provider.respondAlways((seen, answer) => {
    if (seen.method === 'POST' && !seen.url.includes('count_tokens')) {
      return respondToProgram(seen, answer)
    }
    answer.head(404, {})
    answer.end()
  })

  // Each starts some twenty processes of its program.
  t.setTimeout(2_400_000)
  for (const { client, program, ask, goOn, env, file } of installed) {
    t.test(client, { timeout: 1_200_000 }, async t => {
      const key = await newKey()
      const origin = provider.directOrigin
      const { home, run } = createHome(
        t,
        // A machine with much to do must not lose a prompt's second.
        { BASE_URL: base, MEMORY_KEY: key, MEMORY_VAULT_HOOK_MS: '8000', ...env(origin) },
        { work: clone('api'), again: clone('api'), elsewhere: clone('web') },
      )
      if (file) {
        const [path, text] = file(origin)
        mkdirSync(dirname(join(home, path)), { recursive: true })
        writeFileSync(join(home, path), text)
      }
      const command = join(programs!, program)
      const vault = createTestClient(base, key)
      const stored = async (count: number) => {
        for (;;) {
          const { body } = await vault.get('/v1/memory/list')
          const { items } = body as { items: { role: string; text: string; metadata: object }[] }
          if (items.length >= count) return items
          await delay(100)
        }
      }
      /** What the provider got of a run. */
      const sentBy = async (words: string[], folder: string): Promise<string> => {
        const before = provider.requests.length
        await run(command, words, folder)
        const bodies = provider.requests.slice(before).map(({ body }) => body.toString())
        return bodies.join('\n')
      }

      const connected = await run(process.execPath, [
        connect,
        client,
        '--memory',
        'plugin',
        '--yes',
      ])
      t.match(connected, /stored a turn and recalled it/)
      t.equal((await vault.get('/v1/memory/list')).body.items.length, 0, 'the marker is gone')
      const begun = await sentBy(ask(first), 'work')
      t.match(begun, 'in earlier sessions, kept in the person', 'a skill is offered')
      await stored(2)
      await run(command, goOn(later), 'work')
      const rows = await stored(4)
      // opencode puts quotes around words of its command line.
      const said = rows.map(({ role, text }) => `${role}: ${text.replaceAll('"', '')}`).toSorted()
      t.match(said, [
        /^assistant: All done/,
        /^assistant: All done/,
        `user: ${later}`,
        `user: ${first}`,
      ])
      t.equal(rows.length, 4, 'once each')
      for (const { metadata } of rows)
        t.match(metadata, { repository: 'h.org/acme/api', agent_id: client })
      t.notMatch(await sentBy(ask(question), 'again'), /memory_context[^]*heron-42/)
      t.match(await run(process.execPath, [hooks, 'allow', '.'], 'again'), 'h.org/acme/api')
      t.match(await sentBy(ask(question), 'again'), /memory_context[^]*heron-42/)
      t.notMatch(await sentBy(ask(question), 'elsewhere'), 'heron-42')
      await stored(10)
      const status = await run(process.execPath, [hooks, 'status'])
      t.match(status, /stored: \d+ times[^]*h\.org\/acme\/web assistant: All done/)
      t.notMatch(status, key)

      t.match(await run(process.execPath, [connect, client, '--undo', '--yes']), /Removed/)
      t.notOk(existsSync(join(home, `.config/memory-vault/hooks/${client}.json`)))
      if (file) t.notMatch(readFileSync(join(home, file(origin)[0]), 'utf8'), /memory|hooks/)
    })
  }
}

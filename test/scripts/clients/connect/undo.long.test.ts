import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  change,
  createConnect,
  filesBefore as before,
  filesOf,
} from '#test/support/start/connect-home.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const owner = await startTestApi(t, backend, key)
const connect = createConnect(owner.base, key)

t.test(
  'what a person changed since stays; what is ours goes, also where they changed it',
  async t => {
    const folder = t.testdir({ ...before.codex, ...before.gemini })
    await connect(folder, 'codex', '--yes')
    change(folder, 'config.toml', '[tui]', '[features]\nnew = true\n\n[tui]')
    t.match(await connect(folder, 'codex', '--undo', '--yes'), { code: 0 })
    const expected = before.codex!['config.toml']!.replace(
      '[tui]',
      '[features]\nnew = true\n\n[tui]',
    )
    t.equal(filesOf(folder)['config.toml'], expected)

    await connect(folder, 'codex', '--yes')
    change(folder, 'config.toml', 'env_key = "OPENAI_API_KEY"', 'env_key = "OTHER"')
    change(folder, 'config.toml', 'model_provider = "vault"', 'model_provider = "mine"')
    const undone = await connect(folder, 'codex', '--undo', '--yes')
    t.match(undone, { code: 0, out: /model_provider: as you have set it since/ }, undone.error)
    t.notMatch(filesOf(folder)['config.toml'], /vault|mcp_servers/)
    t.match(filesOf(folder)['config.toml'], 'model_provider = "mine"')

    await connect(folder, 'gemini', '--yes')
    change(folder, 'settings.json', '"theme": "x"', '"theme": "y"')
    change(folder, '.env', 'GEMINI_API_KEY=abc', 'GEMINI_API_KEY=def')
    t.match(await connect(folder, 'gemini', '--undo', '--yes'), { code: 0 })
    t.equal(filesOf(folder)['.env'], '# mine\nGEMINI_API_KEY=def\n')
    t.equal(
      filesOf(folder)['settings.json'],
      before.gemini!['settings.json']!.replace('"x"', '"y"'),
    )
  },
)

t.test('--undo takes back what a program or a person wrote over', async t => {
  const rewrite = (folder: string, name: string, alter: (value: never) => unknown): void => {
    const value = JSON.parse(readFileSync(join(folder, name), 'utf8')) as never
    writeFileSync(join(folder, name), JSON.stringify(alter(value), null, 3))
  }
  const signIn = (value: object) => ({ ...value, security: { auth: { selectedType: 'oauth' } } })
  const gemini = t.testdir({ 'settings.json': '{"ui": {"theme": "x"}}' })
  await connect(gemini, 'gemini', '--yes', '--memory', 'plugin')
  rewrite(gemini, 'settings.json', signIn)
  t.match(await connect(gemini, 'gemini', '--undo', '--yes'), { code: 0, out: /Ended: the key/ })
  t.same(JSON.parse(filesOf(gemini)['settings.json']!), signIn({ ui: { theme: 'x' } }))
  t.same(readdirSync(join(gemini, '.config'), { recursive: true }), [])

  const claude = t.testdir({})
  await connect(claude, 'claude-code', '--yes', '--memory', 'plugin')
  const mine = { hooks: [{ type: 'command', command: 'mine' }] }
  rewrite(claude, 'settings.json', ({ hooks, ...rest }: { hooks: { Stop: object[] } }) => ({
    ...rest,
    env: { ANTHROPIC_BASE_URL: 'http://mine' },
    hooks: { ...hooks, Stop: [...hooks.Stop, mine] },
  }))
  writeFileSync(join(claude, '.claude.json'), '{"mcpServers": {"memory": ')
  const undone = await connect(claude, 'claude-code', '--undo', '--yes')
  t.match(undone, { code: 1, out: /Ended: the key/, error: /Left as it is: .*\.claude\.json/ })
  t.same(JSON.parse(filesOf(claude)['settings.json']!), {
    env: { ANTHROPIC_BASE_URL: 'http://mine' },
    hooks: { Stop: [mine] },
  })
})

t.test('--undo sends first what the hooks have kept', async t => {
  const folder = t.testdir({})
  await connect(folder, 'claude-code', '--yes', '--memory', 'plugin')
  const waiting = join(folder, '.local/state/memory-vault/hooks/waiting')
  mkdirSync(waiting, { recursive: true })
  const messages = [{ role: 'user', content: 'The ferry is late.', timestamp: 1_790_000_000_000 }]
  const about = { client: 'claude-code', repository: '/x', session: 's' }
  const turn = { ...about, key: 'k-1', body: { messages, metadata: { repository: '/x' } } }
  writeFileSync(join(waiting, 'k-1.json'), JSON.stringify(turn))
  t.match(await connect(folder, 'claude-code', '--undo', '--yes'), { code: 0 })
  t.same(readdirSync(waiting), [])
  await waitUntil('stored', async () => {
    const { body } = await owner.post('/v1/memory/search', { query: 'ferry', limit: 5 })
    return JSON.stringify(body).includes('The ferry is late.')
  })
  await owner.post('/v1/memory/delete-ids', { metadata: { repository: '/x' } })
})

t.test('a program that writes its whole file again keeps what it has changed', async t => {
  const folder = t.testdir(before['claude-code'])
  await connect(folder, 'claude-code', '--yes')
  const file = join(folder, '.claude.json')
  const config = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: object }
  Object.assign(config, { numStartups: 4 })
  Object.assign(config.mcpServers, { later: { command: 'y' } })
  writeFileSync(file, JSON.stringify(config, null, 2))
  t.match(await connect(folder, 'claude-code', '--undo', '--yes'), { code: 0 })
  const mcpServers = { docs: { command: 'x' }, later: { command: 'y' } }
  t.equal(readFileSync(file, 'utf8'), JSON.stringify({ numStartups: 4, mcpServers }, null, 2))
})

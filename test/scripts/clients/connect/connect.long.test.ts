import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { clients } from '#scripts/clients/connect/clients.ts'
import {
  buildKey,
  startJobWorkers,
  createTestClient,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { createConnect, filesBefore as before, filesOf } from '#test/support/start/connect-home.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const owner = await startTestApi(t, backend, key)
const { base } = owner

const connect = createConnect(base, key)

/** The key that the command made for a client. */
const keyOf = (folder: string, client: string): { id: string; key: string; rights: string } =>
  JSON.parse(readFileSync(join(folder, '.memory-vault', `${client}.key.json`), 'utf8')) as {
    id: string
    key: string
    rights: string
  }

const activeKeys = async (): Promise<{ id: string; name: string; rights: string }[]> =>
  (await owner.get('/v1/keys?active=true')).body.items.filter(
    ({ rights }: { rights: string }) => rights !== 'all',
  )

t.same(Object.keys(before), Object.keys(clients), 'each client is tried')

for (const client of Object.keys(clients)) {
  t.test(`${client}: connected, again, and undone to the byte`, async t => {
    const folder = t.testdir(before[client])
    const first = await connect(folder, client, '--yes')
    t.match(first, { code: 0, out: /tools search/ }, first.error)
    if (first.out.includes('v1/memory/stats')) t.match(first.out, /holds 0 memories/)
    t.notMatch(first.out + first.error, key, 'the key is masked')
    const connected = filesOf(folder)
    const made = keyOf(folder, client)
    t.match(await activeKeys(), [{ id: made.id, name: clients[client]!.name, rights: made.rights }])
    t.equal(made.rights, clients[client]!.users === 'named' ? 'users' : 'memory')
    t.equal((await createTestClient(base, made.key).get('/v1/account/policy')).status, 403)
    for (const name of Object.keys(before[client]!)) {
      t.match(connected[name], made.key)
      t.notMatch(connected[name], key, 'the key of the account stands in no file')
      t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
      const backup = join(folder, '.memory-vault', `${name}.before`)
      t.equal(readFileSync(backup, 'utf8'), before[client]![name])
      for (const mine of before[client]![name]!.match(
        /(?:#|\/\/) mine|numStartups|docs|WEBUI_NAME|X-Team: a/g,
      ) ?? []) {
        t.match(connected[name], mine, `${name} still has ${mine}`)
      }
    }
    const again = await connect(folder, client)
    t.match(again, { code: 0, out: /connected already/ })
    t.same(filesOf(folder), connected)
    t.equal((await activeKeys()).length, 1)
    const undone = await connect(folder, client, '--undo', '--yes')
    t.match(undone, { code: 0, out: /Restored.*Ended: the key of/s }, undone.error)
    t.same(filesOf(folder), before[client])
    t.same(await activeKeys(), [])
    for (const name of Object.keys(before[client]!))
      t.equal(statSync(join(folder, name)).mode & 0o777, 0o644, 'as it was')
    t.notOk(existsSync(join(folder, '.memory-vault')))
    t.match(await connect(folder, client, '--undo'), { code: 0, out: /is not connected/ })
  })

  t.test(`${client}: where there was no file, one is made for its owner alone`, async t => {
    const folder = join(t.testdir({}), 'not', 'yet')
    t.match(await connect(folder, client, '--yes'), { code: 0 })
    const entries = () => readdirSync(folder, { recursive: true, withFileTypes: true })
    for (const entry of entries()) {
      const path = join(entry.parentPath, entry.name)
      t.equal(statSync(path).mode & 0o777, entry.isFile() ? 0o600 : 0o700, path)
    }
    t.match(await connect(folder, client, '--undo', '--yes'), { code: 0, out: /Removed/ })
    t.notOk(entries().some(entry => entry.isFile()))
  })
}

t.test('what is shown, and what is not written', async t => {
  const folder = t.testdir(before.codex)
  const dry = await connect(folder, 'codex', '--dry-run')
  t.match(dry, { code: 0, out: /\+ model_provider = "vault"/ })
  t.match(dry.out, /- model_provider = "openai" # default/)
  t.match(dry.out, /Nothing was written/)
  t.notMatch(dry.out, key)
  t.match(await connect(folder, 'codex'), { code: 1, error: /add --yes/ })
  const wrong = await connect(folder, 'codex', '--yes', '--key', `mk_${'0'.repeat(32)}`)
  t.match(wrong, { code: 1, error: /answered 401: .*\nNothing was written/s })
  const nowhere = await connect(folder, 'codex', '--yes', '--url', 'http://127.0.0.1:9')
  t.match(nowhere, { code: 1, error: /cannot be reached/ })
  t.same(filesOf(folder), before.codex)
  t.match(await connect(folder, 'emacs'), { code: 2, error: /name one client: claude-code, codex/ })
  t.match(await connect(folder, 'codex', '--url', 'nonsense'), { code: 2, error: /--url/ })
  t.match(await connect(folder, '--help'), { code: 0, out: /--undo/ })
})

t.test('another key in place of the first; the file as it was stays the backup', async t => {
  const folder = t.testdir(before.cursor)
  await connect(folder, 'cursor', '--yes')
  const other = `${key}:read`
  const rewritten = await connect(folder, 'cursor', '--yes', '--key', other)
  t.match(rewritten, { code: 0 })
  t.notMatch(rewritten.out, /\bstore\b/, 'a key that reads has no tool that stores')
  t.match(filesOf(folder)['mcp.json'], `Bearer ${keyOf(folder, 'cursor').key}:read`)
  await connect(folder, 'cursor', '--undo', '--yes')
  t.same(filesOf(folder), before.cursor)
})

t.test(
  'Codex with a ChatGPT login gets memory by its hooks, unless its models are asked for',
  async t => {
    const login = { auth_mode: 'chatgpt', OPENAI_API_KEY: null, tokens: { access_token: 'x' } }
    const folder = t.testdir({ ...before.codex, 'auth.json': JSON.stringify(login) })
    const config = () => filesOf(folder)['config.toml']
    t.match(await connect(folder, 'codex', '--yes'), {
      code: 0,
      out: /signed in with ChatGPT.*stored a turn and recalled it/s,
    })
    t.match(config(), '[mcp_servers.memory]')
    t.match(config(), 'model_provider = "openai" # default')
    t.match(await connect(folder, 'codex', '--yes', '--memory', 'models'), { code: 0 })
    t.match(config(), 'model_provider = "vault"')
    const back = await connect(folder, 'codex', '--yes')
    t.match(back, { code: 0 }, back.error)
    t.notMatch(config(), '"vault"', 'the model calls are as they were')
    t.match(await connect(folder, 'codex', '--undo', '--yes'), { code: 0 })
    t.equal(config(), before.codex!['config.toml'])
  },
)

t.test('hooks stand behind those of the person, are proved, and go to the byte', async t => {
  const own = { hooks: { Stop: [{ hooks: [{ type: 'command', command: 'mine' }] }] }, version: 1 }
  const files = { ...before['claude-code'], 'hooks.json': JSON.stringify(own) }
  for (const client of ['claude-code', 'codex', 'gemini', 'qwen', 'opencode', 'cursor', 'vscode']) {
    const folder = t.testdir({ ...before[client], ...(client === 'codex' && files) })
    const all = (): string[] => readdirSync(folder, { recursive: true }).map(String).toSorted()
    const [texts, names] = [filesOf(folder), all()]
    const connected = await connect(folder, client, '--yes', '--memory', 'plugin')
    t.match(connected, { code: 0, out: /stored a turn and recalled it/ }, connected.error)
    const path = join(folder, '.config/memory-vault/hooks', `${client}.json`)
    const kept = JSON.parse(readFileSync(path, 'utf8')) as object
    t.match(kept, { base_url: base, key: keyOf(folder, client).key })
    t.equal(statSync(path).mode & 0o777, 0o600)
    t.notMatch(Object.values(filesOf(folder)).join(''), /X-Memory-Key|"vault"/)
    if (client === 'codex') t.match(filesOf(folder)['hooks.json'], /"mine".*main\.ts run codex/s)
    t.match(await connect(folder, client, '--memory', 'plugin'), { out: /connected already/ })
    t.match(await connect(folder, client, '--undo', '--yes'), { code: 0 })
    t.same(filesOf(folder), texts)
    t.same(
      all().filter(name => /SKILL|memory-vault/.test(name)),
      [],
    )
    t.ok(names.every(name => all().includes(name)))
  }
})

t.test('--tools-only leaves the model calls of every client as they are', async t => {
  for (const client of Object.keys(clients).filter(name => name !== 'librechat')) {
    const folder = t.testdir(before[client])
    await connect(folder, client, '--yes')
    t.match(await connect(folder, client, '--yes', '--tools-only'), {
      code: 0,
      out: /tools search/,
    })
    const text = Object.values(filesOf(folder)).join('')
    t.match(text, `${base}/mcp`)
    t.notMatch(text, new RegExp(`${base}(?:/v1(?:beta)?)?["\\s]|X-Memory-Key`), client)
    t.match(await connect(folder, client, '--undo', '--yes'), { code: 0 })
    t.same(filesOf(folder), before[client])
  }
  const both = await connect(t.testdir({}), 'codex', '--tools-only', '--memory', 'models')
  t.match(both, { code: 2, error: /exclude each other/ })
  const none = await connect(t.testdir({}), 'open-webui', '--memory', 'plugin')
  t.match(none, { code: 2, error: /Open WebUI has no hooks/ })
  const other = await connect(t.testdir({}), 'codex', '--memory', 'magic')
  t.match(other, { code: 2, error: /must be one of models, plugin, tools/ })
})

t.test(
  'a chat UI names its users; with a key that is not of the account all share one vault',
  async t => {
    const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
    const folder = t.testdir({})
    t.match(
      (await connect(folder, 'open-webui', '--yes')).out,
      /each user has a vault of their own/,
    )
    t.match(filesOf(folder)['.env'], 'FORWARD_USER_INFO_HEADER_USER_ID=X-Memory-User\n')
    const { id: first } = keyOf(folder, 'open-webui')
    const shared = await connect(folder, 'open-webui', '--yes', '--key', ada.key)
    t.match(shared, { code: 0, out: /Everybody who uses this Open WebUI shares the vault/ })
    t.notMatch(filesOf(folder)['.env'], 'X-Memory-User')
    t.notOk(
      (await activeKeys()).some(({ id }) => id === first),
      'the first key has ended',
    )
    t.match(
      (await connect(folder, 'librechat', '--yes')).out,
      /X-Memory-User: "\{\{LIBRECHAT_USER_ID\}\}"[^]*allowedAddresses: \["127\.0\.0\.1:\d+"\]/,
    )
    await connect(folder, 'librechat', '--undo', '--yes')
    await connect(folder, 'open-webui', '--undo', '--yes')
  },
)

t.test(
  'a key that makes no keys is used itself, and one that cannot be ended is named',
  async t => {
    const { body } = await owner.post('/v1/keys', { rights: 'memory' })
    const folder = t.testdir({})
    t.match(await connect(folder, 'cursor', '--yes', '--key', body.key), { code: 0 })
    t.match(filesOf(folder)['mcp.json'], `Bearer ${body.key}`)
    const undone = await connect(folder, 'cursor', '--undo', '--yes')
    t.match(undone, { code: 0 })
    t.notMatch(undone.out, /key of/)
    await connect(folder, 'cursor', '--yes')
    const kept = join(folder, '.memory-vault', 'cursor.key.json')
    const away = { ...keyOf(folder, 'cursor'), baseUrl: 'http://127.0.0.1:9' }
    writeFileSync(kept, JSON.stringify(away))
    const left = await connect(folder, 'cursor', '--undo', '--yes')
    t.match(left, { code: 0, out: new RegExp(`still works.*/v1/keys/${away.id}`) })
  },
)

t.test('a file that cannot be read is left as it is', async t => {
  for (const [client, name, text] of [
    ['cursor', 'mcp.json', '{"mcpServers": {'],
    ['codex', 'config.toml', 'mcp_servers = { memory = { url = "u" } }\n'],
    ['vscode', 'mcp.json', '[]'],
  ] as const) {
    const folder = t.testdir({ [name]: text })
    const refused = await connect(folder, client, '--yes')
    t.match(refused, { code: 1, error: new RegExp(name) }, refused.error)
    t.same(filesOf(folder), { [name]: text })
  }
})

t.test('a link stays a link', async (t: Test) => {
  const folder = t.testdir({
    dotfiles: before.cursor!,
    home: { 'mcp.json': t.fixture('symlink', '../dotfiles/mcp.json') },
  })
  t.match(await connect(join(folder, 'home'), 'cursor', '--yes'), { code: 0 })
  t.match(
    filesOf(join(folder, 'dotfiles'))['mcp.json'],
    keyOf(join(folder, 'dotfiles'), 'cursor').key,
  )
  t.ok(existsSync(join(folder, 'dotfiles', '.memory-vault', 'mcp.json.before')))
})

t.test(
  'a link to a file that is not there yet stays a link, and one in the way is not followed',
  async t => {
    const folder = t.testdir({
      dotfiles: { bashrc: 'mine' },
      home: {
        'mcp.json': t.fixture('symlink', '../dotfiles/mcp.json'),
        '.env': '',
        '.env.new': t.fixture('symlink', '../dotfiles/bashrc'),
      },
    })
    const home = join(folder, 'home')
    t.match(await connect(home, 'cursor', '--yes'), { code: 0 })
    t.match(
      filesOf(join(folder, 'dotfiles'))['mcp.json'],
      keyOf(join(folder, 'dotfiles'), 'cursor').key,
    )
    t.ok(lstatSync(join(home, 'mcp.json')).isSymbolicLink())
    t.match(await connect(home, 'open-webui', '--yes'), { code: 0 })
    t.match(filesOf(home)['.env'], keyOf(home, 'open-webui').key)
    t.equal(filesOf(join(folder, 'dotfiles')).bashrc, 'mine')
  },
)

t.test('a project that ignores its .env is offered nothing to commit', async t => {
  const folder = t.testdir({ '.gitignore': '.env\n', '.env': 'WEBUI_NAME=Mine\n' })
  execFileSync('git', ['init', '-q', folder])
  t.match(await connect(folder, 'open-webui', '--yes'), { code: 0 })
  const status = execFileSync('git', ['-C', folder, 'status', '--porcelain', '-uall'], {
    encoding: 'utf8',
  })
  t.equal(status, '?? .gitignore\n')
})

t.test('a variable that is set to nothing names no folder', async t => {
  const folder = t.testdir({})
  t.match(await connect(folder, 'codex', '--yes', '--config-dir', ''), { code: 0 })
  const codexHome = join(folder, '.codex')
  t.match(filesOf(codexHome)['config.toml'], keyOf(codexHome, 'codex').key)
})

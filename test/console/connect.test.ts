import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { connectedClients } from '#api/console/app/vault/connect/snippets.ts'
import { MemoryVaultApi } from '#api/client/n8n/MemoryVaultApi.credentials.ts'
import { clients } from '#scripts/clients/connect/clients.ts'

const place = { url: 'http://127.0.0.1:3000', key: 'mk_0123456789abcdef', rights: 'users' } as const

/** Programs that the console and `npm run connect` both know, by the console's name. */
const connectNames: Record<string, string> = {
  'claude-code': 'claude-code',
  codex: 'codex',
  'gemini-cli': 'gemini',
  opencode: 'opencode',
  cursor: 'cursor',
  vscode: 'vscode',
  'open-webui': 'open-webui',
  librechat: 'librechat',
}

for (const [name, connectName] of Object.entries(connectNames)) {
  t.test(`${name}: the console shows what npm run connect writes`, t => {
    const snippets = connectedClients[name]!.snippets(place)
    const files = clients[connectName]!.files(
      { baseUrl: place.url, key: place.key, rights: place.rights },
      { env: {}, home: '/nowhere', platform: 'linux', configDir: undefined, cwd: '/nowhere' },
    )
    // That of LibreChat ends with what a person puts into its librechat.yaml, which the command prints.
    const printed = snippets.slice(files.length).map(({ text }) => text)
    const notes = clients[connectName]!.notes({
      baseUrl: place.url,
      key: place.key,
      rights: place.rights,
    })
    for (const text of printed) t.ok(notes.join('').includes(text), text)
    for (const [index, { format, settings }] of files.entries()) {
      const { text } = snippets[index]!
      for (const { at, value } of settings) {
        // Its tool servers are a list in one variable, which only the command can add to.
        if (at[0] === 'TOOL_SERVER_CONNECTIONS') continue
        const expected = typeof value === 'function' ? value(undefined) : value
        t.same(format.get(text, at), expected, at.join('.'))
      }
    }
    t.end()
  })
}

t.test('SDKs and clients: the console shows the programs that the pages run', t => {
  const programs = (page: string, language: string): string[] =>
    [
      ...readFileSync(page, 'utf8').matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g')),
    ].map(([, text]) =>
      text!
        .replaceAll('`${process.env.BASE_URL}/v1`', `'${place.url}/v1'`)
        .replaceAll(/process\.env\.BASE_URL!?/g, `'${place.url}'`)
        .replaceAll(/process\.env\.MEMORY_KEY!?/g, `'${place.key}'`)
        .replaceAll('os.environ["BASE_URL"] + "/v1"', `"${place.url}/v1"`)
        .replaceAll('os.environ["BASE_URL"]', `"${place.url}"`)
        .replaceAll('os.environ["MEMORY_KEY"]', `"${place.key}"`)
        .trim(),
    )
  const blocks = new Set([
    ...['connect-an-sdk', 'frameworks', 'users'].flatMap(name =>
      programs(`api/guides/${name}.md`, 'ts'),
    ),
    ...programs('api/client/README.md', 'ts'),
    ...programs('api/client/python/README.md', 'python'),
  ])
  // What reads no variable of the environment needs no import for it.
  const isRun = (text: string) => blocks.has(text) || blocks.has(`import os\n${text}`)
  for (const [name, { kind, snippets }] of Object.entries(connectedClients)) {
    if (name === 'curl' || !['SDKs by base URL', 'Clients'].includes(kind)) continue
    for (const { file, text } of snippets(place)) t.ok(isRun(text), `${name}: ${file}`)
  }
  t.end()
})

t.test('frameworks: each adapter has an entry, and settings are those of the packages', t => {
  const texts = Object.values(connectedClients)
    .filter(({ kind }) => kind === 'Frameworks')
    .flatMap(({ snippets }) => snippets(place))
    .map(({ text }) => text)
  const all = texts.join('\n')
  const { exports } = JSON.parse(readFileSync('api/client/package.json', 'utf8')) as {
    exports: Record<string, unknown>
  }
  for (const name of Object.keys(exports).slice(1)) {
    t.ok(all.includes(`'memory-vault-client${name.slice(1)}'`), name)
  }
  const parts = new Set(['__init__', 'core', 'long_texts', 'memory_files', 'session_items'])
  for (const file of readdirSync('api/client/python/memory_vault/adapters')) {
    const name = file.replace('.py', '')
    if (file.endsWith('.py') && !parts.has(name))
      t.ok(all.includes(`from memory_vault.adapters.${name} import`), name)
  }
  for (const { displayName } of new MemoryVaultApi().properties) {
    t.ok(all.includes(`${displayName}: `), displayName)
  }
  const manifest = JSON.parse(readFileSync('api/client/openclaw/openclaw.plugin.json', 'utf8')) as {
    id: string
    configSchema: { required: string[] }
  }
  const { plugins } = JSON.parse(texts.at(-1)!) as {
    plugins: { slots: { memory: string }; entries: Record<string, { config: object }> }
  }
  t.equal(plugins.slots.memory, manifest.id)
  t.same(Object.keys(plugins.entries[manifest.id]!.config), manifest.configSchema.required)
  t.end()
})

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { programs } from '#api/client/programs/programs.ts'
import { snippetsOf } from '#api/client/programs/snippets.ts'
import { MemoryVaultApi } from '#api/client/n8n/MemoryVaultApi.credentials.ts'
import { clients, configFiles, notesFor } from '#scripts/clients/connect/clients.ts'
import { guideRow } from '#test/support/checks/guide-row.ts'

const place = { url: 'http://127.0.0.1:3000', key: 'mk_0123456789abcdef', rights: 'users' } as const
const guide = 'api/guides/agents.md'

for (const client of Object.values(clients)) {
  t.test(`${client.name}: the console shows what npm run connect writes`, t => {
    const snippets = snippetsOf(client, place)
    const vault = { baseUrl: place.url, key: place.key, rights: place.rights }
    const files = configFiles(client, vault, {
      env: {},
      home: '/nowhere',
      platform: 'linux',
      configDir: undefined,
      cwd: '/nowhere',
    })
    // That of LibreChat ends with what a person puts into its librechat.yaml, which the command prints.
    const notes = notesFor(client, vault).join('')
    for (const { text } of snippets.slice(files.length)) t.ok(notes.includes(text), text)
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

t.test('the guide for agents has the row of each client', t => {
  const agents = Object.values(clients).filter(({ seen }) => seen)
  const isRow = (line: string): boolean => agents.some(({ name }) => line.startsWith(`| ${name} |`))
  const rows = agents.map(guideRow)
  const lines = readFileSync(guide, 'utf8').split('\n')
  const head = lines.findIndex(line => line.startsWith('|---')) + 1
  const others = lines.slice(head).filter(line => !isRow(line))
  const written = [...lines.slice(0, head), ...rows, ...others]
  if (process.env.ROWS === 'write') writeFileSync(guide, written.join('\n'))
  else t.same(lines, written, 'ROWS=write writes them')
  t.end()
})

t.test('SDKs and clients: the console shows the programs that the pages run', t => {
  const programsOf = (page: string, language: string): string[] =>
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
      programsOf(`api/guides/${name}.md`, 'ts'),
    ),
    ...programsOf('api/client/README.md', 'ts'),
    ...programsOf('api/client/python/README.md', 'python'),
  ])
  // What reads no variable of the environment needs no import for it.
  const isRun = (text: string) => blocks.has(text) || blocks.has(`import os\n${text}`)
  for (const [id, program] of Object.entries(programs)) {
    if (id === 'curl' || !['SDKs by base URL', 'Clients'].includes(program.kind!)) continue
    for (const { file, text } of snippetsOf(program, place)) t.ok(isRun(text), `${id}: ${file}`)
  }
  t.end()
})

t.test('frameworks: each adapter has an entry, and settings are those of the packages', t => {
  const texts = Object.values(programs)
    .filter(({ kind }) => kind === 'Frameworks')
    .flatMap(program => snippetsOf(program, place))
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

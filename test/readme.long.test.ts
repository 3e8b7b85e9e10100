import { execFile } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { createCredentials } from '#scripts/create-credentials.ts'
import { readConfig } from '#shared/core/config.ts'
import { builtInNames } from '#shared/core/provider-registry.ts'
import { jobNames, jobOptions } from '#shared/domain/jobs.ts'
import { createTestClient, startJobWorkers } from '#test/support/api.ts'
import { installPackage } from '#test/support/installed-package.ts'
import { providerKey } from '#test/support/model-provider.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { processEnvironment } from '#test/support/processes.ts'
import {
  inlineCodeSpans,
  pages,
  readPage,
  readSection,
  parseSnippets,
  parseTables,
} from '#test/support/readme.ts'
import { compileCache } from '#test/support/compile-cache.ts'

// A dozen programs, one after the other.

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = `${root}node_modules/typescript/bin/tsc`

const { backend, base, provider } = await startProxyFixture(t)
await startJobWorkers(backend)
const { memoryKey, adminKey } = await backend.postgres.transaction(tx =>
  createCredentials(tx, backend.config.keyPepper, {
    email: 'newcomer@example.com',
    keyName: 'First Key',
    keyLifetimeDays: null,
    adminLifetimeDays: 1,
    paymentMethod: 'card',
    balance: null,
  }),
)

const snippets = pages.flatMap(parseSnippets)

// The folder of somebody who has cloned the project, started it and installed the SDKs.
const cloned = ['api', 'shared', 'scripts', 'workers', 'package.json']
const folder = t.testdir({
  ...Object.fromEntries(cloned.map(name => [name, t.fixture('symlink', `${root}${name}`)])),
  '.vault': {
    'credentials.json': JSON.stringify({
      base_url: base,
      memory_key: memoryKey,
      admin_key: adminKey,
    }),
  },
  node_modules: {},
  'tsconfig.json': JSON.stringify({
    extends: `${root}tsconfig.json`,
    compilerOptions: {
      lib: ['esnext', 'dom'],
      exactOptionalPropertyTypes: false,
      types: ['node'],
      tsBuildInfoFile: 'types.tsbuildinfo',
    },
    include: ['snippet-*.ts'],
  }),
  ...Object.fromEntries(snippets.map(({ name, text, language }) => [`${name}.${language}`, text])),
})
const everything = pages.map(({ text }) => text).join('\n')

/** Without the loaders that the test runner puts into every Node process it sees start. */
const compile = (...args: string[]) =>
  run('env', ['-u', 'NODE_OPTIONS', process.execPath, tsc, ...args])
for (const name of readdirSync(`${root}node_modules`)) {
  symlinkSync(`${root}node_modules/${name}`, `${folder}/node_modules/${name}`)
}
const built = installPackage('api/client', `${folder}/node_modules`)

const environment = {
  ...processEnvironment(backend.config),
  DATA_DIR: `${folder}/.vault`,
  OPENAI_API_KEY: providerKey('openai'),
  OPENAI_BASE_URL: provider.env.OPENAI_BASE_URL!,
  ANTHROPIC_API_KEY: providerKey('anthropic'),
  GEMINI_API_KEY: providerKey('google'),
  LANGCHAIN_TRACING_V2: 'false',
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
}

/** Runs commands in the terminal that all snippets share: what one exports, the next ones have. */
async function inTerminal(commands: string): Promise<string> {
  const script = `set -euo pipefail\nunset NODE_OPTIONS\ntouch exported\nsource ./exported\n${commands}\nexport -p >exported`
  const { stdout } = await run('bash', ['-c', script], {
    cwd: folder,
    env: environment,
    timeout: 200_000,
  })
  return stdout
}

/** What snippets print, by the heading they stand under. */
const printed: Record<string, RegExp> = {
  'A first call': /My cat is called Ada/,
  'Plain fetch, calling the model yourself': /<memory_context>[^]*My cat is called Ada/,
  'TypeScript, typed': /turns nine in May/,
  'A team': /mk_org_\w{32}/,
  'Move in, move out': /1 stored/,
  Queues: /mk_admin_\w{32}/,
}
/** Those that ask a model, with the memory of the first call. */
const askModels = new Set(['OpenAI', 'Anthropic', 'Gemini', 'Vercel AI SDK', 'LangChain', 'curl'])

const headingOf = (title: string): string => title.replace(/ \([\w/-]+\.md:\d+\)$/, '')

for (const { title, name, language, text, reason } of snippets) {
  if (!['sh', 'ts'].includes(language) || reason) continue

  t.test(`${title} runs`, async t => {
    await built
    provider.clearRequests()
    const said = await inTerminal(language === 'sh' ? text : `node ${name}.ts`)
    const heading = headingOf(title)
    t.not(said, '', 'it shows something')
    t.notMatch(said, /"error"/)
    if (printed[heading]) t.match(said, printed[heading])
    if (askModels.has(heading)) {
      t.match(said, /Noted/, 'the answer of the model')
      const [asked] = provider.requests
      t.match(asked?.body.toString(), /memory_context[^]*My cat is called Ada/, 'with the memory')
    }
  })
}

t.test('snippets in TypeScript have no faults of types', async t => {
  await built
  const { stdout } = await compile('-p', folder).catch((error: { stdout: string }) => error)
  t.equal(stdout, '')
})

t.test('MCP clients attach as they are told to', async t => {
  const env: Record<string, string> = {
    BASE_URL: base,
    MEMORY_KEY: memoryKey,
    MEMORY_VAULT_FOLDER: root.replace(/\/$/, ''),
  }
  const configured = snippets.filter(({ text }) => text.includes('mcpServers'))
  t.equal(configured.length, 2)
  for (const { text, title } of configured) {
    const filled = text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => env[name]!)
    const { mcpServers } = JSON.parse(filled) as { mcpServers: { memory: Attached } }
    const client = new Client({ name: 'readme', version: '1.0.0' })
    await client.connect(transportOf(mcpServers.memory))
    const found = await client.callTool({
      name: 'search',
      arguments: { query: 'my cat', limit: 3 },
    })
    t.match(JSON.stringify(found.structuredContent), 'Ada', title)
    await client.close()
  }
})

type Attached =
  | { type: 'http'; url: string; headers: Record<string, string> }
  | { type?: never; command: string; args: string[]; env: Record<string, string> }

const transportOf = (server: Attached) =>
  server.type === 'http'
    ? new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: server.headers },
      })
    : new StdioClientTransport({
        ...server,
        env: { PATH: process.env.PATH!, ...compileCache, ...server.env },
      })

t.test('blocks are run, or say why not', async t => {
  for (const { language, title, reason } of snippets) {
    t.ok(['sh', 'ts', 'json'].includes(language) || reason, `${title}: ${language}`)
    if (reason) t.ok(reason.length > 20, `${title}: ${reason}`)
  }
})

t.test('the first page is short, and links lead somewhere', async t => {
  t.ok(readPage('README.md').split('\n').length <= 211, 'at most 210 lines')
  for (const { file, text } of pages) {
    for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      t.ok(existsSync(join(root, dirname(file), target!)), `${file} links ${target}`)
    }
  }
})

t.test('every endpoint that is served stands on the page, and no other', async t => {
  const { body } = await createTestClient(base).get('/')
  const served = Object.keys((body as { endpoints: Record<string, string> }).endpoints)
  const written = parseTables(readSection(readPage('api/README.md'), 'What is served')).flatMap(
    ({ head, rows }) => {
      const below = inlineCodeSpans(head[0]!)[0] ?? ''
      return rows.flatMap(([cell]) =>
        inlineCodeSpans(cell!).flatMap(code => endpointsOf(code, below)),
      )
    },
  )
  t.same(written.toSorted(), served.toSorted())
  t.same(new Set(written).size, written.length, 'none twice')
  for (const page of ['/docs', '/openapi.json', '/console', '/mcp', '/metrics', '/admin/queues']) {
    t.ok(everything.includes(`\`${page}\``), page)
  }
})

/** `GET, PUT /a` is two endpoints; a page is none. */
function endpointsOf(code: string, below: string): string[] {
  const [, methods, path] = /^([A-Z, ]+) (\/\S*)$/.exec(code) ?? []
  if (!methods || !path) return []
  const whole = below && path === '/' ? below : `${below}${path}`
  return methods.split(', ').map(method => `${method} ${whole}`)
}

t.test('the board is the board of the code', async t => {
  const [board] = parseTables(readSection(readPage('workers/README.md'), 'The queue board'))
  const rows = new Map(board!.rows.map(cells => [inlineCodeSpans(cells[0]!)[0]!, cells]))
  t.same([...rows.keys()].toSorted(), jobNames.toSorted())
  for (const name of jobNames.filter(name => rows.has(name))) {
    const { concurrency, batchSize } = jobOptions[name]
    t.equal(rows.get(name)![2], `${concurrency} × ${batchSize}`, name)
  }
})

t.test('every variable of the environment is in the table, and no other', async t => {
  const read = new Set<string>()
  const asking = new Proxy({}, { get: (_, name) => void read.add(String(name)) })
  t.throws(() => readConfig(asking))
  const named = [...read].filter(name => !/^(?!RERANK_).*_(API_KEY|BASE_URL|MODELS)$/.test(name))
  const [table] = parseTables(readPage('scripts/guides/environment.md'))
  const written = table!.rows.flatMap(([name]) => inlineCodeSpans(name!))
  t.same(
    written.toSorted(),
    [...named, 'DATA_DIR', '<NAME>_API_KEY', '<NAME>_BASE_URL', '<NAME>_MODELS'].toSorted(),
  )
  const providers = inlineCodeSpans(table!.rows.find(([name]) => name!.includes('<NAME>'))![2]!)
  for (const name of builtInNames) t.ok(providers.includes(name.toUpperCase()), name)
})

t.test('the map is of this tree', async t => {
  const folders: string[] = []
  let top = ''
  for (const line of /\n```\n([^]*?)\n```/
    .exec(readSection(readPage('README.md'), 'The map'))![1]!
    .split('\n')) {
    const depth = line.search(/\S/)
    // Further in, a line goes on with what the one above says.
    if (depth > 2) continue
    const indented = depth > 0
    const names = line.trim().split(/ {2,}/)[0]!.split(' ')
    for (const name of names.filter(name => name.endsWith('/'))) {
      if (!indented) top = name
      folders.push(indented ? `${top}${name}` : name)
    }
  }
  const there = [
    ...globSync('*/', { cwd: root }),
    ...globSync('{api,shared,scripts,workers}/*/', { cwd: root }),
  ]
    .map(name => `${name.replace(/\/$/, '')}/`)
    .filter(name => !name.startsWith('node_modules'))
  t.same(there.filter(name => !folders.includes(name)).toSorted(), [], 'folders without a line')
  t.same(
    folders.filter(name => globSync(name, { cwd: root }).length === 0),
    [],
    'lines without a folder',
  )
})

t.test('paths, commands and endpoints that the text names exist', async t => {
  const scripts = Object.keys(
    (JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: object }).scripts,
  )
  for (const [, name] of everything.matchAll(/npm run (?:--\S+ )*([a-z-]+)/g)) {
    t.ok(scripts.includes(name!), `npm run ${name}`)
  }
  for (const [path] of everything.matchAll(
    /\b(?:api|shared|scripts|workers|test)\/[\w./-]*\w\b/g,
  )) {
    t.ok(globSync(path, { cwd: root }).length > 0, path)
  }
  const known = new Set(
    Object.values(contractDocument.endpoints).map(({ method, path }) => `${method} ${path}`),
  )
  const said = everything
    .split('\n')
    .filter(line => !line.startsWith('|'))
    .flatMap(inlineCodeSpans)
    .filter(code => /^(GET|POST|PUT|PATCH|DELETE) \/v1\S*$/.test(code))
  for (const code of said) t.ok(known.has(code.replace(/\?.*/, '')), code)
})

t.test('the drawings of the flows name files that exist', async t => {
  const drawn = readSection(readPage('shared/README.md'), 'Flows')
  const files = [...drawn.matchAll(/\b[a-z-]+(?:\/[\w.-]+)+\.ts\b/g)].map(([file]) => file)
  t.ok(files.length > 15)
  for (const file of files) {
    t.ok(existsSync(join(root, file)) || existsSync(join(root, 'shared', file)), file)
  }
})

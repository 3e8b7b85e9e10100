import { execFile } from 'node:child_process'
import { readdirSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t from 'tap'
import { createCredentials } from '#scripts/create-credentials.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { installPackage } from '#test/support/start/installed-package.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import {
  inlineCodeSpans,
  pages,
  readPage,
  readSection,
  parseSnippets,
  parseTables,
} from '#test/support/checks/readme.ts'
import { compileCache } from '#test/support/start/compile-cache.ts'

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

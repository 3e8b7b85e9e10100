import { execFile } from 'node:child_process'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { MemoryVault } from '#api/client/n8n/MemoryVault.node.ts'
import { MemoryVaultApi } from '#api/client/n8n/MemoryVaultApi.credentials.ts'
import { contractDocument } from '#api/contract/document.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const folder = fileURLToPath(new URL('../../../api/client/n8n', import.meta.url))
const { description } = new MemoryVault()
type Sent = { type?: string; property?: string }
type Property = {
  name: string
  displayOptions?: { show: { operation: string[] } }
  routing?: { send: Sent }
}
const [operations, ...fields] = description.properties as unknown as [
  { options: { value: string; routing: { request: { method: string; url: string } } }[] },
  ...Property[],
]

t.test('each operation is an endpoint of the contract, each field one of its request', t => {
  t.equal(new MemoryVaultApi().name, description.credentials[0]!.name)
  t.equal(operations.options.length, 5)
  for (const { value, routing } of operations.options) {
    const { method, url } = routing.request
    const endpoint = Object.values(contractDocument.endpoints).find(
      one => one.method === method && one.path === url,
    )
    t.ok(endpoint, `${method} ${url}`)
    const shown = fields.filter(field => field.displayOptions?.show.operation.includes(value))
    t.ok(shown.length > 0, value)
    for (const { routing: { send } = { send: {} } } of shown) {
      if (send.property === undefined) continue
      const { $ref } = send.type === 'query' ? endpoint!.query! : endpoint!.body!.schema
      const part = JSON.stringify(contractDocument.$defs[$ref.replace('#/$defs/', '')])
      t.match(part, `"${send.property}"`, `${value}: ${send.property}`)
    }
  }
  t.end()
})

t.test('the package has the shape that n8n loads', t => {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.match(manifest.name, /^n8n-nodes-/)
  t.ok(manifest.keywords.includes('n8n-community-node-package'))
  for (const file of [...manifest.n8n.nodes, ...manifest.n8n.credentials]) {
    t.ok(existsSync(join(folder, file.replace('dist/', '').replace('.js', '.ts'))), file)
  }
  t.equal(description.icon, 'file:memory-vault.svg')
  t.ok(existsSync(join(folder, 'memory-vault.svg')))
  t.end()
})

const modules = process.env.CLIENT_MODULES
const isThere = modules !== undefined && existsSync(join(modules, 'node_modules/n8n-core'))
const skip = !isThere && 'CLIENT_MODULES names no folder with n8n-core'

t.test('n8n loads the package and sends what its nodes declare', { skip }, async t => {
  const backend = await createTestBackend(t)
  await startJobWorkers(backend)
  const { base } = await startTestApi(t, backend)
  const dir = t.testdir({})
  const run = (command: string, args: string[]) =>
    promisify(execFile)(command, args, {
      cwd: dir,
      env: { PATH: process.env.PATH, HOME: dir, MODULES: modules, N8N_ENCRYPTION_KEY: 'test' },
    })
  cpSync(folder, join(dir, 'package'), { recursive: true })
  const tsc = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url))
  await run(tsc, ['-p', folder, '--outDir', join(dir, 'package/dist')])
  const { prepack } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).scripts
  await run('sh', ['-c', `cd package && ${prepack.slice(prepack.indexOf('cp *.svg'))}`])
  const ask = async (parameters: object, key: string) => {
    const args = [
      '-e',
      program,
      JSON.stringify({ parameters, credentials: { baseUrl: base, key } }),
    ]
    return JSON.parse((await run(process.execPath, args)).stdout) as Record<string, unknown>[]
  }
  const key = await buildKey(backend)
  const said = {
    operation: 'store',
    userMessage: 'My canoe is red.',
    answer: 'Noted.',
    user: 'ada',
  }
  t.match(await ask(said, key), [{ accepted: true, queued: false }])
  const found = await ask({ operation: 'search', query: 'canoe', limit: 1, user: 'ada' }, key)
  t.match(found, [{ content: 'My canoe is red.' }])
  t.same(await ask({ operation: 'search', query: 'canoe', limit: 1 }, key), [], 'another user')
  const question = 'Which colour is my canoe?'
  t.match(await ask({ operation: 'recall', message: question, user: 'ada' }, key), [
    { context: /My canoe is red/ },
  ])
  const listed = await ask({ operation: 'list', limit: 10, user: 'ada' }, key)
  t.equal(listed.length, 2)
  const ids = listed.map(({ memory_id: id }) => id).join(', ')
  t.match(await ask({ operation: 'delete', ids, user: 'ada' }, key), [{ deleted: 2 }])
})

/** Loads the package as n8n does and runs the node once, with the parameters that are its argument. */
const program = `
const { createRequire } = require('node:module')
const load = createRequire(process.env.MODULES + '/node_modules/n8n-core/package.json')
load('reflect-metadata')
const { PackageDirectoryLoader, RoutingNode, ExecuteContext } = load('n8n-core')
const { Workflow, NodeHelpers } = load('n8n-workflow')
const { parameters, credentials } = JSON.parse(process.argv[1])

async function main() {
  const loader = new PackageDirectoryLoader(process.cwd() + '/package')
  await loader.loadAll()
  const { type } = loader.nodeTypes.memoryVault
  const credential = loader.credentialTypes.memoryVaultApi.type
  const node = {
    id: '1', name: 'vault', type: 'memoryVault', typeVersion: 1, position: [0, 0],
    parameters: NodeHelpers.getNodeParameters(type.description.properties, parameters, true, false, null, type.description),
    credentials: { memoryVaultApi: { id: '1', name: 'vault' } },
  }
  const nodeTypes = { getByNameAndVersion: () => type, getByName: () => type, getKnownTypes: () => ({}) }
  const workflow = new Workflow({ id: '1', nodes: [node], connections: {}, active: false, nodeTypes })
  const additionalData = {
    credentialsHelper: {
      isCredentialUsableByNode: () => true,
      getDecrypted: async () => credentials,
      getParentTypes: () => [],
      getCredentialsProperties: () => credential.properties,
      preAuthentication: async () => undefined,
      authenticate: async (data, name, request) => {
        const headers = Object.entries(credential.authenticate.properties.headers).map(([header, value]) =>
          [header, workflow.expression.getSimpleParameterValue(node, value, 'internal', { $credentials: data })])
        return { ...request, headers: { ...request.headers, ...Object.fromEntries(headers) } }
      },
      updateCredentials: async () => undefined,
    },
    hooks: { runHook: async () => undefined },
  }
  const items = [{ json: {} }]
  const input = { main: [items] }
  const executeData = { data: input, node, source: null }
  const run = { resultData: { runData: {} } }
  const context = new ExecuteContext(workflow, node, additionalData, 'manual', run, 0, items, input, executeData, [])
  const [answers] = await new RoutingNode(context, type).runNode()
  process.stdout.write(JSON.stringify(answers.map(({ json }) => json)))
  process.exit(0)
}
main().catch(error => { process.stderr.write(String(error.stack) + JSON.stringify(error.messages ?? error.description ?? '')); process.exit(1) })
`

import t from 'tap'
import { document } from '#api/contract/document.ts'
import { examples, sampleIds, type Example } from '#api/reference/examples.ts'
import { buildKey, testApi, workOn } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'

const backend = await testBackend(t)
await workOn(backend)
const key = await buildKey(backend)
const api = await testApi(t, backend, key)

/** Real ids in the place of those the reference shows. */
const real = new Map<string, string>()
const made = (name: keyof typeof sampleIds, id: string) => real.set(sampleIds[name], id)

const filled = <T>(value: T): T => {
  if (value === undefined) return value
  let text = JSON.stringify(value)
  for (const [sample, id] of real) text = text.replaceAll(sample, id)
  return JSON.parse(text) as T
}

async function run(operation: string) {
  const endpoint = document.endpoints[operation]!
  const { path = {}, query = {}, headers = {}, body } = filled<Example>(examples[operation] ?? {})
  const target = endpoint.path.replaceAll(/\/:([A-Za-z]+)/g, (_, name: string) =>
    ['/', encodeURIComponent(String(path[name]))].join(''),
  )
  const search = new URLSearchParams(filledText(query))
  return api.send(endpoint.method, `${target}?${search.toString()}`, {
    body,
    headers: {
      ...filledText(headers),
      ...(endpoint.body && { 'content-type': endpoint.body.media[0]! }),
    },
  })
}

const filledText = (fields: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))

t.test('the examples of a vault, in the order of a life', async t => {
  const other = await api.post('/v1/keys', { name: 'Destination' })
  made('destinationKey', other.body.key)
  const told = await run('ingest')
  made('operation', told.body.operation_id)
  t.equal(told.status, 200)
  const { body: listed } = await run('list')
  made('memory', listed.items.find(({ role }: { role: string }) => role === 'user').memory_id)
  const alone = [
    ['prepare', 'search', 'edit', 'dateSearch', 'upload', 'exportVault', 'importVault', 'warmup'],
    ['stats', 'statsOfKey', 'transfer', 'graft', 'listOperations', 'readOperation', 'createKey'],
    ['usage', 'putProviderKey', 'listProviderKeys', 'deleteProviderKey', 'health', 'information'],
  ].flat()
  for (const operation of alone) {
    const { status, body } = await run(operation)
    t.ok(status === 200 || status === 201, `${operation}: ${status} ${JSON.stringify(body)}`)
  }
  const lent = await run('checkout')
  made('batch', lent.body.batch_id)
  t.equal((await run('commit')).status, 200)
  for (const operation of ['inspect', 'deleteIds', 'clearMemory', 'rotateKey']) {
    const { status, body } = await run(operation)
    t.ok(status === 200 || status === 201, `${operation}: ${status} ${JSON.stringify(body)}`)
  }
  t.equal((await run('cancelOperation')).status, 409, 'what is done cannot be cancelled')
})

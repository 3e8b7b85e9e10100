import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { VaultStore } from '#api/client/adapters/langgraph-store.ts'
import { vaultClient } from '#api/client/client.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

async function startStore() {
  const vault = vaultClient(base, await buildKey(backend))
  return { vault, store: new VaultStore(vault) }
}

const ada = ['users', 'ada']
const memories = [...ada, 'memories']

t.test('an item is read as it was put, replaced, and deleted', async t => {
  const { vault, store } = await startStore()
  const value = { text: 'I like sailing. ', nested: { list: [1, 2.5, null, true], 東京: '🦊' } }
  await store.put(memories, 'likes', value)
  const first = await store.get(memories, 'likes')
  t.same(first?.value, value)
  t.match(first, { namespace: memories, key: 'likes', createdAt: Date, updatedAt: Date })
  await store.put(memories, 'likes', { text: 'I like rowing.' })
  await store.put(memories, 'likes', { text: 'I like rowing.' })
  const second = await store.get(memories, 'likes')
  t.same(second?.value, { text: 'I like rowing.' })
  t.same(second?.createdAt, first?.createdAt)
  t.ok(second!.updatedAt > first!.updatedAt)
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 1)
  t.equal(await store.get(ada, 'likes'), null, 'another namespace')
  await store.delete(memories, 'likes')
  t.equal(await store.get(memories, 'likes'), null)
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 0)
})

t.test('a long value comes back whole, whatever its spaces and signs', async t => {
  const { store } = await startStore()
  const value = { text: ' a  b\n\t"🦊" é '.repeat(700) }
  await store.put(memories, 'long', value)
  t.same((await store.get(memories, 'long'))?.value, value)
  const [found] = await store.search(ada, { query: 'a b é' })
  t.same(found?.value, value)
})

t.test('a key that is too long for a field of metadata, and a time', async t => {
  const { vault, store } = await startStore()
  const keys = ['ab'.repeat(400), `${'ab'.repeat(400)}c`, '🦊'.repeat(256), '🦊'.repeat(257)]
  for (const key of keys) await store.put(memories, key, { text: 'A boat.', at: new Date(0) })
  await store.put(memories, keys[0]!, { text: 'A canoe.' })
  t.same((await store.get(memories, keys[0]!))?.value, { text: 'A canoe.' })
  const value = { text: 'A boat.', at: '1970-01-01T00:00:00.000Z' }
  t.match(await store.get(memories, keys[3]!), { key: keys[3], value })
  const found = await store.search(memories)
  t.same(found.map(({ key }) => key).toSorted(), keys.toSorted())
  t.equal((await store.search(memories, { query: 'canoe' }))[0]?.key, keys[0])
  await store.delete(memories, keys[1]!)
  t.equal(await store.get(memories, keys[1]!), null)
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 3)
})

t.test('values of many tokens per character, below a long path, come back whole', async t => {
  const { vault, store } = await startStore()
  const below = [...ada, 'የአዲስ'.repeat(40)]
  for (const letters of ['ሰላም ለዓለም ', 'ສະບາຍດີ ', 'ދިވެހި ', 'བོད་སྐད་', '🪿🫎🪭', '𠮷𡈽𠀋']) {
    const value = { text: letters.repeat(60) }
    await store.put(below, 'bio\n[', value)
    t.same((await store.get(below, 'bio\n['))?.value, value, letters)
    const { items } = await vault.call('GET /v1/memory/list', { query: { limit: 200 } })
    t.ok(items.length > 1)
    for (const { text } of items) t.ok(countTokens(text) <= 512, letters)
  }
})

t.test('two processes that put the same words in the same millisecond', async t => {
  const { vault, store } = await startStore()
  const other = new VaultStore(vault)
  const { now } = Date
  const moment = now()
  Date.now = () => moment
  t.teardown(() => void (Date.now = now))
  const value = { text: 'tea' }
  await Promise.all(
    [store, other, store].map((one, at) => one.put([...ada, String(at)], 'likes', value)),
  )
  await Promise.all([store, other].map((one, n) => one.put(ada, 'tea', { ...value, n })))
  Date.now = now
  t.match((await store.get(ada, 'tea'))?.value, { ...value, n: Number })
  t.equal((await store.search(ada)).length, 4)
  await store.put(ada, 'tea', { text: 'coffee' })
  t.same((await store.get(ada, 'tea'))?.value, { text: 'coffee' })
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 4, 'and nothing else is left')
})

t.test('what is stored are the words of an item, as the words of a user', async t => {
  const { vault, store } = await startStore()
  await store.put(ada, 'boat', { text: 'My boat lies in Lisbon.', tags: ['sea'], n: 900 })
  await store.put(ada, 'open', { open: true })
  const { items } = await vault.call('GET /v1/memory/list')
  const rows = items.map(({ text, role }) => [text, role])
  t.same(rows.toSorted(), [
    ['My boat lies in Lisbon.\nsea', 'user'],
    ['{"open":true}', 'user'],
  ])
})

t.test('items of the first form, with a head and JSON, are read and replaced', async t => {
  const { vault, store } = await startStore()
  const named = { lg_0: 'users', lg_1: 'ada', lg_depth: 2 }
  const at = 1_700_000_000_000
  const line = (part: number, text: string, fields: object) => ({
    content: `users/ada/bio 1a.${part}\n[${text}]`,
    role: 'assistant',
    timestamp: at,
    metadata: { ...named, lg_at: at + 0.5, lg_since: at, lg_part: part, ...fields },
  })
  const lines = [
    line(0, '{"text":"I ', { lg_key: 'bio', lg_parts: 2 }),
    line(1, 'sail."}', { lg_key: 'bio', lg_parts: 2 }),
    line(0, 'cut by an edit', { lg_key: 'cut', lg_parts: 1 }),
    line(0, '{"text":"half', { lg_key: 'half', lg_parts: 2 }),
  ]
  const body = lines.map(one => JSON.stringify(one)).join('\n')
  await vault.call('POST /v1/memory/upload', { body })
  t.match(await store.get(ada, 'bio'), { value: { text: 'I sail.' }, createdAt: new Date(at) })
  t.equal(await store.get(ada, 'cut'), null)
  t.same(
    (await store.search(ada, { query: 'sail' })).map(({ key }) => key),
    ['bio'],
  )
  for (const key of ['bio', 'cut', 'half']) await store.put(ada, key, { text: 'I row.' })
  t.equal((await store.search(ada)).length, 3)
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 3)
})

t.test('search: below a namespace, by meaning, with filters and pages', async t => {
  const { store } = await startStore()
  await store.put(memories, 'cat', { text: 'My cat is called Tom.', weight: 4 })
  await store.put(memories, 'boat', { text: 'My boat lies in Lisbon.', weight: 900 })
  await store.put(['users', 'ben'], 'cat', { text: 'My cat is called Mia.', weight: 5 })
  const keys = (items: { key: string }[]): string[] => items.map(({ key }) => key)
  const [best] = await store.search(ada, { query: 'where is the boat?' })
  t.match(best, { key: 'boat', score: Number, value: { weight: 900 } })
  t.same(keys(await store.search(ada)), ['boat', 'cat'], 'the one written last first')
  t.equal((await store.search([])).length, 3)
  t.equal((await store.search(['users'])).length, 3)
  t.same(await store.search(['user']), [], 'a label is whole')
  t.same(keys(await store.search([], { filter: { weight: { $gt: 4, $lt: 100 } } })), ['cat'])
  t.same(keys(await store.search([], { filter: { weight: 900 } })), ['boat'])
  t.same(keys(await store.search(ada, { limit: 1, offset: 1 })), ['cat'])
  t.same(await store.listNamespaces(), [memories, ['users', 'ben']])
  t.same(await store.listNamespaces({ maxDepth: 1 }), [['users']])
  t.same(await store.listNamespaces({ prefix: ['*', 'ben'] }), [['users', 'ben']])
  t.same(await store.listNamespaces({ suffix: ['memories'] }), [memories])
})

t.test('a batch reads what was there before it, and its last write counts', async t => {
  const { store } = await startStore()
  const put = (n: number) => ({ namespace: ada, key: 'n', value: { n } })
  t.same(await store.batch([{ namespace: ada, key: 'n' }, put(1), put(2)]), [
    null,
    undefined,
    undefined,
  ])
  t.same((await store.get(ada, 'n'))?.value, { n: 2 })
})

t.test('namespaces that LangGraph refuses', async t => {
  const { store } = await startStore()
  for (const namespace of [
    [],
    ['a.b'],
    [''],
    ['langgraph'],
    Array.from({ length: 11 }, () => 'a'),
  ]) {
    await t.rejects(store.put(namespace, 'k', {}), { name: 'InvalidNamespaceError' })
  }
})

const modules = process.env.CLIENT_MODULES
const isThere =
  modules !== undefined && existsSync(join(modules, 'node_modules/@langchain/langgraph'))
const skip = !isThere && 'CLIENT_MODULES names no folder with @langchain/langgraph'

t.test(
  'a graph of LangGraph remembers in it, and its own store answers alike',
  { skip },
  async t => {
    const loader = join(modules!, 'load-langgraph.mjs')
    writeFileSync(loader, "export * from '@langchain/langgraph'\n")
    const { StateGraph, MessagesAnnotation, InMemoryStore } = await import(
      pathToFileURL(loader).href
    )
    const { store } = await startStore()
    const own = new InMemoryStore()
    for (const one of [own, store]) {
      const graph = new StateGraph(MessagesAnnotation)
        .addNode(
          'remember',
          async ({ messages }: { messages: { text: string }[] }, config: { store: VaultStore }) => {
            await config.store.put(memories, 'said', { text: messages.at(-1)!.text })
            const item = await config.store.get(memories, 'said')
            return { messages: [{ role: 'assistant', content: `Kept: ${item?.value.text}` }] }
          },
        )
        .addEdge('__start__', 'remember')
        .compile({ store: one })
      const { messages } = await graph.invoke({
        messages: [{ role: 'user', content: 'I like tea.' }],
      })
      t.equal(messages.at(-1).text, 'Kept: I like tea.')
      await one.put(ada, 'a', { n: 1 })
      await one.put(ada, 'b', { n: 2 })
    }
    const facts = async (one: VaultStore) => ({
      items: (await one.search(['users']))
        .map(({ namespace, key, value }) => [namespace, key, value])
        .sort(),
      filtered: (await one.search([], { filter: { n: { $gte: 2 } } })).map(({ key }) => key),
      namespaces: await one.listNamespaces({ prefix: ['users'] }),
      missing: await one.get(ada, 'c'),
    })
    t.same(await facts(store), await facts(own))
  },
)

import t from 'tap'
import { ageRows } from '#test/support/checks/alter.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { billedEvents } from '#test/support/checks/observe.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'

/** Which memories model calls were given, and how often. */

const world = await startProxyFixture(t)
const { backend, base } = world
await startJobWorkers(backend)
const path = '/v1/traces/memories'

type Turn = { role: string; content: string | null; [field: string]: unknown }

const user = (content: string): Turn => ({ role: 'user', content })
const chat = (...messages: Turn[]): string => JSON.stringify({ model: 'openai/gpt-5', messages })

async function begin(memoryKey?: string) {
  const key = memoryKey ?? (await buildKey(backend))
  const client = createTestClient(base, key)
  const call = tracedCalls(world, key)
  const ask = async (body: string, headers: Record<string, string> = {}) => {
    const { trace } = await call('/v1/chat/completions', body, {
      'x-memory-store': 'false',
      ...headers,
    })
    return trace!
  }
  const recalled = async (query = '') => (await client.get(path + query)).body.items
  return { key, client, ask, recalled }
}

const bicycle = { text: 'The bicycle is orange.', speaker: 'Ada' }
const xylophone = { text: 'The xylophone is purple.' }

t.test('each with the turns it was recalled for, most first, and its words', async t => {
  const { key, ask, recalled } = await begin()
  await insertMemories(backend, key, [bicycle, xylophone])
  t.same(await recalled(), [])
  await ask(chat(user('Which bicycle is orange?')))
  await ask(chat(user('What colour has the bicycle?')))
  await ask(chat(user('What colour has the xylophone?')))
  const items = await recalled()
  const of = (piece: RegExp) => items.find(({ text }: { text: string }) => piece.test(text))
  t.match(of(/bicycle/), { tier: 1, role: 'user', turns: Number, date: String })
  t.ok(of(/bicycle/).turns >= 2)
  t.ok(of(/xylophone/).turns >= 1)
  t.equal(items[0].turns, Math.max(...items.map(({ turns }: { turns: number }) => turns)))
  t.equal((await recalled('?limit=1')).length, 1)
})

t.test('the steps and later turns of a conversation do not count again', async t => {
  const { key, ask, recalled } = await begin()
  await insertMemories(backend, key, [bicycle])
  const question = user('Which bicycle is orange?')
  await ask(chat(question))
  const [{ turns }] = await recalled()
  t.equal(turns, 1)
  const step: Turn[] = [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'looked' },
  ]
  await ask(chat(question, ...step))
  t.match(await recalled(), { length: 1, 0: { turns: 1 } })
})

t.test('since a moment; nothing of other vaults; nothing is billed', async t => {
  const { key, ask, recalled } = await begin()
  await insertMemories(backend, key, [bicycle])
  const old = await ask(chat(user('Which bicycle is orange?')))
  // The call is billed after its answer.
  await backend.usage.flush()
  const before = await billedEvents(backend, key)
  t.equal((await recalled()).length, 1)
  await backend.usage.flush()
  t.same(await billedEvents(backend, key), before)
  t.same(await (await begin()).recalled(), [])
  await ageRows(backend, 'call_traces', '2 days', { id: old })
  t.same(await recalled(), [], 'a day by default')
  const tomorrow = new Date(Date.now() + 2 * 24 * 3_600_000).toISOString().slice(0, 10)
  t.same(await recalled(`?since=${tomorrow}`), [])
})

t.test('a deleted one has no words, and without texts by policy none has', async t => {
  const { key, client, ask, recalled } = await begin()
  const [id] = await insertMemories(backend, key, [bicycle])
  await ask(chat(user('Which bicycle is orange?')))
  const put = (body: object) => client.send('PUT', '/v1/account/policy', { body })
  await put({ traces: 'ids' })
  const [shown] = await recalled()
  t.equal(shown.turns, 1)
  t.equal(shown.text, undefined)
  await put({ traces: 'texts' })
  t.match(await recalled(), [{ text: bicycle.text }])
  await client.post('/v1/memory/delete-ids', { ids: [id] })
  const after = await recalled()
  t.notMatch(JSON.stringify(after), /orange/)
  await put({ traces: 'off' })
  t.same(await recalled(), [])
})

t.test('a shared memory is shown to those who may see it now', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('sales', ['deals'])
  const key = await team.addMember('ada@example.com', ['sales'])
  const text = 'The orange bicycle costs 900 euro.'
  await seedTeamMemories(backend, team, [{ text, tags: ['deals'] }])
  const { ask, recalled } = await begin(key)
  await ask(chat(user('What does the orange bicycle cost?')))
  t.match(await recalled(), [{ text, turns: 1 }])
  await team.assignRoles('ada@example.com', [])
  const [hidden] = await recalled()
  t.equal(hidden.text, undefined)
})

import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { jobNames } from '#shared/domain/jobs.ts'
import type { CallTrace } from '#shared/vault/read/traces/call-trace.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { ageRows, setTraceReasons } from '#test/support/checks/alter.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { tableText, tablesHolding } from '#test/support/checks/observe.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** Who may read traces, how long they are kept, and what ends them. */

const world = await startProxyFixture(t)
const { backend, base } = world
// Without the sweep, which the tests run themselves.
await startJobWorkers(backend, ...jobNames.filter(name => name !== 'sweep'))

const chat = (content: string, more: object = {}): string =>
  JSON.stringify({ model: 'openai/gpt-5', messages: [{ role: 'user', content }], ...more })
const question = chat('Which bicycle is orange?')

async function begin(key?: string) {
  const own = key ?? (await world.newKey())
  const client = createTestClient(base, own)
  const call = tracedCalls(world, own)
  const ask = async (body = question, headers: Record<string, string> = {}) =>
    (await call('/v1/chat/completions', body, headers)).trace
  const read = (trace: string | null) => client.get(`/v1/traces/${trace}`)
  const list = async () => (await client.get('/v1/traces')).body.items
  const { scope } = await resolveCaller(backend, own)
  return { key: own, client, ask, read, list, vault: scope.vault }
}

const bicycle = { text: 'The bicycle is orange.' }

t.test('a call has a trace when it reads memory, whatever it found', async t => {
  const { ask, read, key } = await begin()
  t.match(await read(await ask()), { status: 200, body: { status: 'none', blocks: [] } })
  t.equal(await ask(chat('Which bicycle?', { memory_mode: 'off' })), null)
  t.equal(await ask(chat('Which bicycle?', { memory_mode: 'write' })), null)
  const reader = tracedCalls(world, `${key}:read`)
  const { trace } = await reader('/v1/chat/completions', question)
  t.equal((await read(trace)).status, 200)
})

t.test('what earlier releases kept has the words of this one', async t => {
  const { ask, read, client, key } = await begin()
  await insertMemories(backend, key, [bicycle])
  const trace = await ask()
  await setTraceReasons(backend, 'reply')
  const { body } = await read(trace)
  t.strictSame(body.blocks[0].memories[0].why, ['context'])
  const exported = await client.get('/v1/account/export')
  t.notMatch(JSON.stringify(exported.body), '"reply"')
})

t.test('404: the trace of another vault, no uuid, none', async t => {
  const one = await begin()
  const other = await begin()
  const trace = await one.ask()
  t.equal((await one.read(trace)).status, 200)
  for (const id of [trace, trace!.replace(/.$/, '0'), 'nothing']) {
    t.match(await other.read(id), {
      status: 404,
      body: { error: 'No such trace', hint: /X-Memory-Trace/ },
    })
  }
  t.match(await world.owner.get(`/v1/traces/${trace}`), { status: 404 })
})

t.test('an owner key reads the traces of its users by X-Memory-User', async t => {
  const key = await buildKey(backend)
  const { ask, client } = await begin(key)
  const headers = { 'x-memory-user': 'ada' }
  const trace = await ask(question, headers)
  t.match((await client.get('/v1/traces', headers)).body, { items: [{ trace_id: trace }] })
  t.equal((await client.get(`/v1/traces/${trace}`, headers)).status, 200)
  t.equal((await client.get(`/v1/traces/${trace}`)).status, 404)
  t.same((await client.get('/v1/traces')).body.items, [])
})

t.test('the latest first, page by page', async t => {
  const { ask, client, list } = await begin()
  const traces = []
  for (let count = 0; count < 5; count++) traces.unshift(await ask())
  const ids = (items: { trace_id: string }[]) => items.map(({ trace_id }) => trace_id)
  t.same(ids(await list()), traces)
  const first = (await client.get('/v1/traces?limit=3')).body
  t.match(first, { has_more: true, items: { length: 3 } })
  const rest = (await client.get(`/v1/traces?limit=3&cursor=${first.next_cursor}`)).body
  t.same([...ids(first.items), ...ids(rest.items)], traces)
  t.equal((await (await begin()).client.get(`/v1/traces?cursor=${first.next_cursor}`)).status, 400)
})

t.test('no word of a request, of an answer or of a memory is stored with a trace', async t => {
  const { key, ask } = await begin()
  await insertMemories(backend, key, [{ text: 'The xylophone is purple.' }])
  await ask(chat('Is the xylophone of Quirin purple?', { memory_mode: 'read' }), {
    'x-session-id': 'chat',
  })
  t.notMatch(await tableText(backend, 'call_traces'), /xylophone|quirin|purple/i)
})

t.test('cleared memories take their traces along; a session its own', async t => {
  const { key, client, ask, read, list, vault } = await begin()
  await insertMemories(backend, key, [bicycle])
  const core = await ask()
  const session = await ask(question, { 'x-session-id': 's' })
  t.equal((await list()).length, 2)
  const clear = (query = '') => client.send('DELETE', `/v1/memory${query}`)
  t.equal((await clear('?session_id=s')).status, 200)
  t.equal((await read(session)).status, 404)
  t.equal((await read(core)).status, 200)
  t.equal((await clear()).status, 200)
  t.equal((await read(core)).status, 404)
  t.same(await list(), [])
  await waitUntil(
    'the rows are deleted',
    async () => (await tablesHolding(backend, vault, ['public.call_traces'])).length === 0,
  )
})

t.test('a transfer leaves traces where the calls were made', async t => {
  const { key, client, ask, read } = await begin()
  await insertMemories(backend, key, [bicycle])
  const trace = await ask()
  const destination = await begin()
  await client.post('/v1/memory/transfer?wait=true', { destination_key: destination.key })
  t.equal((await destination.read(trace)).status, 404)
  t.match((await read(trace)).body.blocks[0].memories[0], { line: /orange/ })
})

t.test('a shared memory is shown to those who may see it now', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('sales', ['deals'])
  const key = await team.addMember('ada@example.com', ['sales'])
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'The orange bicycle costs 900 euro.', tags: ['deals'] },
  ])
  const { ask, read } = await begin(key)
  const trace = await ask()
  t.match((await read(trace)).body.blocks[0].memories, [
    { memory_id: id, state: 'same', line: /900 euro/ },
  ])
  await team.assignRoles('ada@example.com', [])
  const { blocks } = (await read(trace)).body
  t.match(blocks[0].memories, [{ memory_id: id, state: 'gone' }])
  t.notMatch(JSON.stringify(blocks), /euro/)
})

t.test('the policy: ids show no text, off has no traces, days end them', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [bicycle])
  const { client, ask, read, list, vault } = await begin(key)
  const put = (body: object) => client.send('PUT', '/v1/account/policy', { body })
  t.match((await client.get('/v1/account/policy')).body, { traces: 'texts', trace_days: 7 })
  const trace = await ask()
  t.match((await read(trace)).body, { texts: true, blocks: [{ memories: [{ line: /orange/ }] }] })

  t.match(await put({ traces: 'ids' }), { status: 200, body: { traces: 'ids', trace_days: 7 } })
  const { body } = await read(trace)
  t.match(body, { texts: false, blocks: [{ memories: [{ state: 'same' }] }] })
  t.notMatch(JSON.stringify(body), /orange/)

  await ageRows(backend, 'call_traces', '5 days', { id: trace! })
  t.equal((await read(trace)).status, 200)
  await put({ trace_days: 4 })
  t.equal((await read(trace)).status, 404, 'fewer days end what is there')
  t.same(await list(), [])
  await put({ trace_days: 30 })
  const kept = await ask()
  await sweepAll(backend)
  await sweepAll(backend)
  t.equal((await read(kept)).status, 200)

  await put({ traces: 'off' })
  t.equal(await ask(), null)
  t.equal((await read(kept)).status, 404)
  t.same(await list(), [])
  await sweepAll(backend)
  await sweepAll(backend)
  t.same(await tablesHolding(backend, vault, ['public.call_traces']), [])
  await put({ traces: 'texts' })
  t.equal((await read(kept)).status, 404)
  t.equal((await read(await ask())).status, 200)
})

t.test('traces whose days are over are deleted, others stay', async t => {
  const { ask, vault, read } = await begin()
  const old = await ask()
  const young = await ask()
  await ageRows(backend, 'call_traces', '8 days', { id: old! })
  t.equal((await read(old)).status, 404)
  const { traces } = await sweepAll(backend)
  t.ok(traces! >= 1)
  t.equal((await read(young)).status, 200)
  t.match(await tablesHolding(backend, vault, ['public.call_traces']), ['public.call_traces'])
  t.same(await tablesHolding(backend, old!, ['public.call_traces']), [])
})

t.test('an erased account has no trace, nor gets one of a call that was under way', async t => {
  const email = `${crypto.randomUUID()}@example.com`
  const key = await buildKey(backend, email)
  await insertMemories(backend, key, [bicycle])
  const { ask, client, vault, read } = await begin(key)
  const { scope } = await resolveCaller(backend, key)
  const trace = await ask()
  const { body } = await read(trace)
  t.equal(body.status, 'ok')
  t.equal((await client.post('/v1/account/erase', { email })).status, 202)
  await waitUntil(
    'the rows are deleted',
    async () => (await tablesHolding(backend, vault, ['public.call_traces'])).length === 0,
  )
  const late = { format: 'openai', status: 'ok', blocks: [] } as unknown as CallTrace
  const rest = { session: null, days: 7, way: 'proxy', trace: late } as const
  const saved = { ...scope, id: mintId(), ...rest }
  await backend.recalledTurns.saveTrace(async () => saved)
  t.same(await tablesHolding(backend, vault, ['public.call_traces']), [])
})

import t, { type Test } from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

/** A model asks what an answer was told. */

const world = await startProxyFixture(t)
const { backend, base } = world
await startJobWorkers(backend)

const chat = (content: string, more: object = {}): string =>
  JSON.stringify({ model: 'openai/gpt-5', messages: [{ role: 'user', content }], ...more })
const question = chat('Which bicycle is orange?')
const bicycle = { text: 'The bicycle is orange.' }

type Answer = Record<string, unknown> & { refused?: string }

async function connect(t: Test, key: string, headers: Record<string, string> = {}) {
  const client = await connectMcp(t, base, key, { headers })
  return async (args: Record<string, unknown> = {}): Promise<Answer> => {
    const { structuredContent, isError, content } = await client.callTool({
      name: 'trace',
      arguments: args,
    })
    if (isError) return { refused: (content[0] as { text: string }).text }
    return structuredContent as Answer
  }
}

async function begin(t: Test, key?: string) {
  const own = key ?? (await world.newKey())
  const call = tracedCalls(world, own)
  const ask = (body = question, headers: Record<string, string> = {}) =>
    call('/v1/chat/completions', body, headers)
  return { key: own, ask, read: await connect(t, own), client: createTestClient(base, own) }
}

t.test('what was recalled, why, and where it stood, of one call and of the latest', async t => {
  const { key, ask, read, client } = await begin(t)
  const [id] = await insertMemories(backend, key, [bicycle])
  const { trace, sent } = await ask()
  const answer = await read({ trace_id: trace })
  t.match(answer, {
    trace_id: trace,
    model: 'openai/gpt-5',
    status: 'ok',
    blocks: [{ memories: [{ memory_id: id, state: 'same', line: /The bicycle is orange/ }] }],
  })
  const { body } = await client.get(`/v1/traces/${trace}`)
  const told = body.blocks[0].memories[0]
  t.match(answer.blocks, [{ memories: [{ relevance: told.relevance, why: told.why }] }])
  const splices = answer.splices as { what: string; at: number; bytes: number }[]
  const { at, bytes } = splices.find(({ what }) => what === 'block')!
  t.match(sent.subarray(at, at + bytes).toString(), /bicycle is orange/)
  for (const latest of [{}, { trace_id: null }, { trace_id: '' }])
    t.same(await read(latest), answer)

  const { trace: second } = await ask(chat('What is the capital of Peru?'))
  t.match(await read(), { trace_id: second })
  t.match(await read({ trace_id: trace }), { trace_id: trace })
})

t.test('a call that was told nothing says so', async t => {
  const { ask, read } = await begin(t)
  const { trace } = await ask()
  t.match(await read(), { trace_id: trace, status: 'none', blocks: [], note: /No memory/ })
})

t.test('a trace belongs to its vault, and an id is an id', async t => {
  const one = await begin(t)
  const other = await begin(t)
  t.match(await one.read(), { refused: /no trace.*model/i })
  const { trace } = await one.ask()
  t.match(await one.read({ trace_id: trace }), { trace_id: trace })
  t.match(await other.read({ trace_id: trace }), { refused: /No such trace/ })
  t.match(await other.read(), { refused: /There is no trace/ })
  t.match(await one.read({ trace_id: mintId() }), { refused: /No such trace/ })
  for (const id of ['memories', '..', '../account', trace!.slice(1), 7]) {
    t.match(await one.read({ trace_id: id }), { refused: /trace_id is not a UUID.*latest/ })
  }
  const writer = await connect(t, `${one.key}:write`)
  for (const args of [{}, { trace_id: trace }]) {
    t.match(await writer(args), { refused: /does not (read|retrieve)/ })
  }
})

t.test('an owner key asks for one of its users', async t => {
  const { key, ask, read } = await begin(t, await buildKey(backend))
  const { trace } = await ask(question, { 'x-memory-user': 'ada' })
  t.match(await read(), { refused: /There is no trace/ })
  const readUser = await connect(t, key, { 'x-memory-user': 'ada' })
  t.match(await readUser(), { trace_id: trace })
})

t.test('a shared memory is shown to those who may see it now', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('sales', ['deals'])
  const key = await team.addMember('ada@example.com', ['sales'])
  const text = 'The orange bicycle costs 900 euro.'
  const [id] = await seedTeamMemories(backend, team, [{ text, tags: ['deals'] }])
  const { ask, read } = await begin(t, key)
  await ask()
  t.match((await read()).blocks, [{ memories: [{ memory_id: id, line: /900 euro/ }] }])
  await team.assignRoles('ada@example.com', [])
  const { blocks } = await read()
  t.match(blocks, [{ memories: [{ memory_id: id, state: 'gone' }] }])
  t.notMatch(JSON.stringify(blocks), /euro/)
})

t.test('the policy of the account holds: ids show no text, off has no traces', async t => {
  const { key, ask, read, client } = await begin(t, await buildKey(backend))
  const [id] = await insertMemories(backend, key, [bicycle])
  const { trace } = await ask()
  const put = (traces: string) => client.send('PUT', '/v1/account/policy', { body: { traces } })
  await put('ids')
  const answer = await read()
  t.match(answer.blocks, [{ memories: [{ memory_id: id, state: 'same' }] }])
  t.notMatch(JSON.stringify(answer), /orange/)
  await put('off')
  t.match(await read(), { refused: /There is no trace/ })
  t.match(await read({ trace_id: trace }), { refused: /No such trace/ })
})

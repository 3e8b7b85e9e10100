import t from 'tap'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import {
  lostBytes,
  sessionCalls,
  type SessionCall,
} from '#test/support/samples/tool-session-calls.ts'
import { families, type Family } from '#test/support/samples/tool-sessions.ts'
import { ageRows } from '#test/support/checks/alter.ts'

/**
 * `X-Memory-Cache-Safe` of requests that are no plain next step of a session: asides, switches, changes of
 * what is remembered, failures. It is compared with the bytes that the provider got.
 */

const world = await startProxyFixture(t)
const { provider, backend, base } = world

const topics = ['bicycle', 'boat', 'house', 'kettle', 'piano', 'lamp']
const facts = topics.map((noun, index) => ({
  text: `The ${noun} of my sister is number ${index + 7} in the blue book.`,
}))

const compaction =
  'Your task is to create a detailed summary of the conversation so far, paying close attention to requests.'

/** The turn's first request with another question. */
const ask = (family: Family, turn: number, question: string, stepsBefore = 3): string =>
  family
    .body(topics, turn, 0, stepsBefore)
    .replaceAll(`Which number has the ${topics[turn]} of my sister? Look it up.`, question)

async function begin(family: Family) {
  const key = await world.newKey()
  const ids = await insertMemories(backend, key, facts)
  const call = sessionCalls(world, `${key}:read`, family)
  const step = (turn: number, done: number, headers?: Record<string, string>) =>
    call(family.body(topics, turn, done), headers)
  const owner = createTestClient(base, key)
  return { key, ids, call, step, owner }
}

const blocks = ({ sent }: SessionCall): number => sent.split('<memory_context>').length - 1

for (const [name, family] of Object.entries(families)) {
  t.test(`${name}: an aside inside a session has the blocks of its turns`, async t => {
    const { call, step } = await begin(family)
    await step(0, 3)
    await step(1, 0)
    const last = await step(1, 3)
    t.ok(blocks(last) > 0)
    const aside = await call(ask(family, 2, compaction))
    t.equal(aside.status, 'aside')
    t.equal(blocks(aside), blocks(last), 'none of its own')
    t.equal(lostBytes(last, aside), 0, 'the cache of the provider serves all of it')
    t.equal(aside.isSafe, true)
    if (family.isAppendOnly) {
      const [one, other] = [last, aside].map(({ sent }) =>
        Buffer.from(sent).subarray(0, aside.bytes),
      )
      t.ok(one!.equals(other!), 'byte for byte')
    }
    const next = await step(2, 0)
    t.equal(lostBytes(last, next), 0, 'and the session goes on')
    t.equal(next.isSafe, true)
  })

  t.test(`${name}: in plain chat an aside has the block of the last turn`, async t => {
    const { call } = await begin(family)
    const last = await call(family.body(topics, 1, 0, 0))
    t.equal(blocks(last), 1)
    const aside = await call(ask(family, 2, compaction, 0))
    t.equal(blocks(aside), 1)
    t.equal(lostBytes(last, aside), 0)
    t.equal(aside.isSafe, true)
    const next = await call(family.body(topics, 2, 0, 0))
    t.equal(next.isSafe, family.marksLastMessage, 'with the next turn it goes')
  })

  t.test(`${name}: memories that are reworded, deleted or cleared`, async t => {
    const { step, ids, owner } = await begin(family)
    await step(0, 0)
    const first = await step(0, 1)
    await owner.post('/v1/memory/delete-ids', { ids: [ids[1]] })
    const deleted = await step(0, 2)
    t.ok(lostBytes(first, deleted) > 0, 'from the block of its own turn')
    t.equal(deleted.isSafe, false)
    const before = await step(0, 3)
    t.equal(before.isSafe, true, 'once')

    const edited = await owner.post('/v1/memory/edit', {
      memory_id: ids[0],
      text: 'The bicycle of my sister is number 70 in the green book.',
    })
    t.equal(edited.status, 200)
    const reworded = await step(1, 0)
    t.match(reworded.sent, 'number 70')
    t.ok(lostBytes(before, reworded) > 0)
    t.equal(reworded.isSafe, false)
    const same = await step(1, 1)
    t.equal(lostBytes(reworded, same), 0)
    t.equal(same.isSafe, true, 'once')

    t.equal(
      (await owner.send('DELETE', '/v1/memory', { headers: { prefer: 'respond-async' } })).status,
      202,
    )
    const empty = await step(2, 0)
    t.equal(blocks(empty), 0)
    t.equal(empty.isSafe, false)
    t.equal((await step(2, 1)).isSafe, true, 'once')
  })
}

/** The two kinds of dialects: one whose requests begin with the one before, and one whose marks move. */
for (const name of ['openai', 'anthropic']) {
  const family = families[name]!

  t.test(`${name}: memory off in the middle of a session`, async t => {
    const { step } = await begin(family)
    const first = await step(0, 3)
    t.equal((await step(0, 0, { 'x-memory-mode': 'off' })).isSafe, true, 'a first request is safe')
    const without = await step(1, 0, { 'x-memory-mode': 'off' })
    t.equal(blocks(without), 0)
    t.ok(lostBytes(first, without) > 0)
    t.equal(without.isSafe, null, 'nothing was looked up, and nothing is said')
    t.equal((await step(1, 0, { 'x-memory-mode': 'write' })).isSafe, null)
    const back = await step(2, 0)
    t.ok(blocks(back) > 0, 'the first turn has its block again')
    t.ok(lostBytes(without, back) > 0, 'the cache of the provider lacks the steps without memory')
    t.equal(back.isSafe, false)
    const after = await step(2, 1)
    t.equal(lostBytes(back, after), 0)
    t.equal(after.isSafe, true)
    t.equal((await step(3, 0)).isSafe, true)
  })

  for (const [header, value] of [
    ['x-memory-as-of', '2100-01-01'],
    ['x-memory-filter', '{"agent_id":"planner"}'],
  ] as const) {
    t.test(`${name}: ${header} begins and ends in the middle of a session`, async t => {
      const { step } = await begin(family)
      const view = { [header]: value }
      const first = await step(0, 3)
      t.ok(blocks(first) > 0)
      const begun = await step(1, 0, view)
      t.ok(lostBytes(first, begun) > 0, 'the block of the first turn is not of this recall')
      t.equal(begun.isSafe, false)
      const next = await step(1, 1, view)
      t.equal(lostBytes(begun, next), 0)
      t.equal(next.isSafe, true, 'once')
      const ended = await step(2, 0)
      t.ok(lostBytes(next, ended) > 0)
      t.equal(ended.isSafe, false)
      const after = await step(2, 1)
      t.equal(lostBytes(ended, after), 0)
      t.equal(after.isSafe, true, 'once')
    })
  }

  t.test(`${name}: a prompt that is too long with its blocks goes on without them`, async t => {
    const { step } = await begin(family)
    await step(0, 3)
    await step(1, 0)
    const before = provider.requests.length
    provider.respondNext(respondJson({ error: { message: 'prompt is too long' } }, { status: 400 }))
    const without = await step(1, 1)
    t.equal(provider.requests.length, before + 2, 'sent once more')
    t.equal(blocks(without), 0)
    t.equal(without.isSafe, false)
    const next = await step(1, 2)
    t.equal(provider.requests.length, before + 3, 'and not refused again')
    t.equal(blocks(next), 0)
    t.equal(lostBytes(without, next), 0)
    t.equal(next.isSafe, true)
    t.equal(blocks(await step(2, 0)), 1, 'the next turn is told something')
  })
}

t.test('a call that is sent again still names where its memories are', async t => {
  const { step } = await begin(families.openai!)
  provider.respondNext(respondJson({ error: { message: 'prompt is too long' } }, { status: 400 }))
  const { status } = await step(0, 0, { 'x-session-id': 's', 'x-memory-sessions': 'core' })
  t.equal(status, 'degraded; sessions=core')
})

t.test('a title with a prompt of its own has no block, and shares no prefix', async t => {
  const { call, step } = await begin(families.openai!)
  await step(0, 3)
  await step(1, 3)
  const body = JSON.parse(families.openai!.body(topics, 2, 0)) as {
    messages: { content: string }[]
  }
  body.messages[0]!.content = 'You are a title generator. You output ONLY a thread title.'
  const title = await call(JSON.stringify(body))
  t.equal(title.status, 'aside')
  t.equal(blocks(title), 0)
  t.equal(title.isSafe, true)
})

t.test('a session that goes on within the hour keeps its blocks', async t => {
  const { step } = await begin(families.openai!)
  await step(0, 3)
  const last = await step(1, 0)
  await ageRows(backend, 'recalled_turns', '59 minutes')
  const long = await step(1, 1)
  t.equal(lostBytes(last, long), 0)
  t.equal(long.isSafe, true)
  await ageRows(backend, 'recalled_turns', '59 minutes')
  t.equal(lostBytes(long, await step(1, 2)), 0, 'it was kept again, of this turn too')
  await ageRows(backend, 'recalled_turns', '71 minutes')
  const late = await step(2, 0)
  t.equal(blocks(late), 1)
  t.equal(late.isSafe, false, 'what the request before had is not known')
})

t.test('what a failure takes out and brings back', async t => {
  const gate = await startFaultProxy(t, backend.config.mongodbUri)
  const config = { ...backend.config, mongodbUri: gate.url }
  // Another process, which has loaded nothing yet.
  const { base: at } = await startTestApi(t, await createTestBackend(t, { config }))
  const family = families.openai!
  const { key, step } = await begin(family)
  const gated = sessionCalls({ provider, base: at }, `${key}:read`, family)
  await step(0, 3)
  const before = await step(1, 0)
  gate.shut()
  const without = await gated(family.body(topics, 1, 1))
  t.ok(lostBytes(before, without) > 0)
  t.equal(without.isSafe, false)
  const back = await step(1, 2)
  t.ok(blocks(back) > 0)
  t.ok(lostBytes(without, back) > 0)
  t.equal(back.isSafe, false)
  t.equal((await step(1, 3)).isSafe, true)

  t.equal((await gated(family.body(topics, 2, 0))).isSafe, false, 'a turn that begins so')
  const next = await step(3, 0)
  t.ok(blocks(next) > 0)
  t.equal(next.isSafe, false)
  t.equal((await step(3, 1)).isSafe, true)
})

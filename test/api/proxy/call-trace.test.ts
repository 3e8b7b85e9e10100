import { createHash } from 'node:crypto'
import t from 'tap'
import { createTestClient } from '#test/support/api.ts'
import { insertMemories } from '#test/support/insert-memories.ts'
import { respondJson } from '#test/support/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { families } from '#test/support/tool-sessions.ts'
import { tracedCalls, type TracedCall } from '#test/support/traced-calls.ts'

/** What a trace holds of a model call, and that its replay has the bytes which the provider got. */

const world = await startProxyFixture(t)
const { provider, backend, base } = world

const topics = ['bicycle', 'boat', 'house']
const facts = topics.map((noun, index) => ({
  text: `The ${noun} of my sister is number ${index + 7} in the blue book.`,
}))

async function begin(stored = facts) {
  const key = await world.newKey()
  const ids = await insertMemories(backend, key, stored)
  const client = createTestClient(base, key)
  const replay = async ({ trace, body }: Pick<TracedCall, 'trace' | 'body'>) =>
    (await client.post(`/v1/traces/${trace}/replay`, { body })).body
  const read = async ({ trace }: TracedCall) => (await client.get(`/v1/traces/${trace}`)).body
  return { key, ids, client, call: tracedCalls(world, key), replay, read }
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

for (const [name, family] of Object.entries(families)) {
  t.test(
    `${name}: a replay has the bytes that the provider got, blocks of earlier turns too`,
    async t => {
      const { key, call, replay, read } = await begin([])
      const calls: TracedCall[] = []
      for (const [turn, step] of [
        [0, 0],
        [0, 3],
        [1, 0],
        [1, 2],
        [2, 0],
        [2, 1],
      ] as const) {
        // Each turn is told what the one before it could not be.
        if (step === 0) await insertMemories(backend, key, [facts[turn]!])
        calls.push(await call(family.path, family.body(topics, turn, step)))
      }
      for (const one of calls) {
        const { body, ...answer } = await replay(one)
        t.equal(body, one.sent.toString())
        t.match(answer, { matches: true, sha256: sha256(one.sent), bytes: one.sent.length })
        t.same([answer.changed, answer.gone], [[], []])
      }
      const last = await read(calls.at(-1)!)
      t.same(
        last.blocks.map(({ turn }: { turn: number | null }) => turn),
        [0, 1, null],
        'the blocks of both earlier turns stand in the prompt',
      )
      t.match(last, {
        format: name,
        status: 'ok',
        texts: true,
        received_bytes: calls.at(-1)!.body.length,
      })
      for (const { at, bytes } of last.splices.filter(isBlock)) {
        t.match(
          calls
            .at(-1)!
            .sent.subarray(at, at + bytes)
            .toString(),
          /memory_context|^\W*$/,
        )
      }
    },
  )
}

const isBlock = ({ what }: { what: string }): boolean => what === 'block'

const chat = (content: string, more: object = {}): string =>
  JSON.stringify({ model: 'openai/gpt-5', messages: [{ role: 'user', content }], ...more })

t.test('which memories, why, at which revision, and where in the bytes', async t => {
  const { ids, call, read, client, key } = await begin()
  const body = chat('<system-reminder>Be brief.</system-reminder>\nWhich number has the bicycle?', {
    memory_mode: 'on',
  })
  const one = await call('/v1/chat/completions', body)
  const trace = await read(one)
  t.match(trace, { trace_id: one.trace, model: 'openai/gpt-5', session_id: null, as_of: null })
  t.match(trace, {
    abstained: null,
    left_out: { 'system-reminder': 1 },
    sent_sha256: sha256(one.sent),
  })
  t.ok(trace.confidence > 0)
  const [block] = trace.blocks
  t.equal(block.memories[0].memory_id, ids[0])
  t.match(block.memories[0], { state: 'same', line: /UTC · user\] The bicycle of my sister/ })
  t.ok(block.memories[0].relevance > 0)
  t.ok(block.memories[0].why.includes('words'))
  const at = ({ at, bytes }: { at: number; bytes: number }) =>
    one.sent.subarray(at, at + bytes).toString()
  t.same(
    trace.splices.map(({ what }: { what: string }) => what),
    ['model', 'block'],
    'in the order of the bytes',
  )
  t.equal(at(trace.splices[0]), '"gpt-5"')
  t.match(at(trace.splices[1]), /^\{"role":"user","content":"<memory_context>[^]*\},$/)
  const [removed] = trace.removed
  t.match(body.slice(removed.at, removed.at + removed.bytes), /^,?"memory_mode":"on",?$/)
  const before = trace.revision
  await client.post('/v1/memory/edit', { memory_id: ids[2], text: 'The house is sold.' })
  const later = await read(await call('/v1/chat/completions', chat('Which number has the boat?')))
  t.ok(later.revision > before)
  t.equal(
    (await client.post(`/v1/traces/${one.trace}/replay`, { body })).body.words.trim(),
    'Which number has the bicycle?',
  )
  t.ok(key)
})

t.test('after an edit and a deletion a line says so, and the digest is another', async t => {
  const { ids, call, read, replay, client } = await begin()
  const one = await call(
    '/v1/chat/completions',
    chat('Which numbers have bicycle, boat and house?'),
  )
  t.equal((await read(one)).blocks[0].memories.length, 3)
  await client.post('/v1/memory/edit', { memory_id: ids[1], text: 'The boat is sold to Zoltan.' })
  await client.post('/v1/memory/delete-ids', { ids: [ids[0]] })
  const trace = await read(one)
  const states = trace.blocks[0].memories.map((memory: { state: string }) => memory.state)
  t.same(states.toSorted(), ['changed', 'gone', 'same'])
  t.notMatch(
    JSON.stringify(trace),
    /bicycle|boat|Zoltan/,
    'neither the text of then nor that of now',
  )
  const answer = await replay(one)
  t.match(answer, { matches: false, changed: [ids[1]], gone: [ids[0]] })
  const { messages } = JSON.parse(answer.body)
  t.match(messages[0].content, new RegExp(`\n\\[memory ${ids[0]} is gone\\]\n`))
  t.match(messages[0].content, new RegExp(`\n\\[memory ${ids[1]} has changed\\]\n`))
  t.match(messages[0].content, /number 9 in the blue book/)
  t.notMatch(messages[0].content, /bicycle|boat/)
})

t.test('the body of another conversation is refused, a changed one does not match', async t => {
  const { call, client, replay } = await begin()
  const body = chat('Which number has the boat?', { temperature: 1 })
  const one = await call('/v1/chat/completions', body)
  const other = await client.post(`/v1/traces/${one.trace}/replay`, { body: chat('Hello') })
  t.match(other, { status: 400, body: { error: /not that of the traced call/, hint: /unchanged/ } })
  const broken = await client.post(`/v1/traces/${one.trace}/replay`, { body: '{"messages"' })
  t.equal(broken.status, 400)
  t.equal((await client.post(`/v1/traces/${one.trace}/replay`, {})).status, 400)
  const changed = await replay({ ...one, body: body.replace('1}', '0}') })
  t.match(changed, { matches: false, gone: [], changed: [] })
})

t.test(
  'a prompt that is too long with its block: the trace is that of what was answered',
  async t => {
    const { call, read, replay } = await begin()
    provider.respondNext(
      respondJson(
        {
          error: {
            message: 'too long',
            type: 'invalid_request_error',
            code: 'context_length_exceeded',
          },
        },
        { status: 400 },
      ),
    )
    const one = await call('/v1/chat/completions', chat('Which number has the boat?'))
    t.equal(one.status, 200)
    t.match(await read(one), { status: 'degraded', blocks: [] })
    t.match(await replay(one), { matches: true, body: one.sent.toString() })
  },
)

t.test('a long body and one in other characters are replayed byte for byte', async t => {
  const { call, replay } = await begin()
  const body = chat(`Which number has the boat? ${'ünï🚤 '.repeat(80_000)}`)
  const one = await call('/v1/chat/completions', ` ${body}\n`)
  t.equal(one.status, 200)
  const { matches, body: sent } = await replay(one)
  t.equal(matches, true)
  t.ok(sent === one.sent.toString())
})

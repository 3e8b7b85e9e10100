import { createHash } from 'node:crypto'
import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { families } from '#test/support/samples/tool-sessions.ts'
import { tracedCalls, type TracedCall } from '#test/support/samples/traced-calls.ts'

/** What a trace holds of a model call: its digest and its places are those of the bytes which the provider got. */

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
  const read = async ({ trace }: TracedCall) => (await client.get(`/v1/traces/${trace}`)).body
  return { key, ids, client, call: tracedCalls(world, key), read }
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

for (const [name, family] of Object.entries(families)) {
  t.test(
    `${name}: the digest is that of what the provider got, with blocks of earlier turns`,
    async t => {
      const { key, call, read } = await begin([])
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
        t.equal((await read(one)).sent_sha256, sha256(one.sent))
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
  t.ok(key)
})

t.test('after an edit and a deletion a line says so', async t => {
  const { ids, call, read, client } = await begin()
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
})

t.test(
  'a prompt that is too long with its block: the trace is that of what was answered',
  async t => {
    const { call, read } = await begin()
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
    t.match(await read(one), {
      status: 'degraded',
      blocks: [],
      sent_sha256: sha256(one.sent),
    })
  },
)

t.test('the digest of a long body in other characters', async t => {
  const { call, read } = await begin()
  const body = chat(`Which number has the boat? ${'ünï🚤 '.repeat(80_000)}`)
  const one = await call('/v1/chat/completions', ` ${body}\n`)
  t.equal(one.status, 200)
  t.equal((await read(one)).sent_sha256, sha256(one.sent))
})

import t, { type Test } from 'tap'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'
import {
  findHeader,
  startRecordingServer,
  type Responder,
} from '#test/support/doubles/recording-server.ts'
import { startService } from '#test/support/start/start-service.ts'

const reranker = await startRecordingServer(t, () => {})
const url = `${reranker.origin}/rerank`

/** Answers with JSON made of what was asked. */
const answering =
  (
    build: (asked: { documents?: string[]; texts?: string[] }) => unknown,
    status = 200,
  ): Responder =>
  ({ body }, answer) => {
    answer.head(status, { 'content-type': 'application/json' })
    void answer.write(JSON.stringify(build(JSON.parse(body.toString()))))
    answer.end()
  }
const positions = (count: number) => Array.from({ length: count }, (_, index) => index)
/** The last document is the best. */
const reversing = answering(({ documents = [] }) => ({
  results: positions(documents.length).map(index => ({ index, relevance_score: index })),
}))

const { backend, base } = await startService(t, { jobs: [] })
const { key } = await createKeyedClient(backend, base)
const texts = positions(60).map(n => `The violin lesson number ${n} was in room ${n}.`)
await insertMemories(backend, key, [
  ...texts.map(text => ({ text })),
  { text: 'Which violin lesson was it?' },
  { text: `${'Rain fell. '.repeat(80)}The violin teacher is called Ada.` },
])
const plain = createTestClient(base, key)

/** The same vault with a reranker that has not been asked yet. */
async function withReranker(t: Test, more: Record<string, string | number> = {}) {
  const settings = { model: 'judge', apiKey: '', timeoutMs: 20_000, ...more }
  const own = { ...settings, url: `${url}?${crypto.randomUUID()}` }
  const other = { ...backend, config: { ...backend.config, reranker: own } }
  return createTestClient((await startTestApi(t, other)).base, key)
}

const query = 'Which violin lesson was it?'
const search = async (client: typeof plain, limit: number, sought = query) => {
  const { status, body } = await client.post('/v1/memory/search', { query: sought, limit })
  t.equal(status, 200)
  return body as {
    matchingMemories: number
    memories: { id: string; content: string; score: number }[]
  }
}

t.test('the reranker orders what matches; scores stay sorted, and none is dropped', async t => {
  reranker.respondAlways(reversing)
  const client = await withReranker(t, { apiKey: 'of-the-judge' })
  const [before, after] = [await search(plain, 62), await search(client, 62)]
  const ids = ({ memories }: typeof before) => memories.map(({ id }) => id)
  t.same(ids(after), [
    ids(before)[0],
    ...ids(before).slice(1, 60).toReversed(),
    ...ids(before).slice(60),
  ])
  t.equal(after.memories[0]?.content, query, 'the very text that is asked stays first')
  t.same(
    after.memories.map(({ score }) => score),
    before.memories.map(({ score }) => score),
  )
  t.equal(after.matchingMemories, before.matchingMemories)
  const [asked] = reranker.requests
  t.equal(findHeader(asked!.headers, 'authorization'), 'Bearer of-the-judge')
  const sent = JSON.parse(asked!.body.toString()) as { documents: string[] }
  t.match(sent, { model: 'judge', query, documents: [/violin/] })
  const passage = sent.documents.find(text => text.includes('Ada'))
  t.ok(passage === undefined || passage.length < 600, 'a long memory by its best passage')

  const few = await search(client, 2)
  t.same(ids(few), [ids(before)[0], ids(await search(plain, 40))[39]], 'from beyond the limit')
  t.equal((await search(client, 1, 'violin lesson number')).memories.length, 1)
})

t.test('a block tells what the reranker puts first', async t => {
  reranker.respondAlways(reversing)
  const client = await withReranker(t)
  const told = async (of: typeof plain): Promise<string> => {
    const messages = [{ role: 'user', content: 'In which room was the violin lesson?' }]
    const { body } = await of.post('/v1/memory/prepare', { messages, context_limit: 3 })
    return body.context as string
  }
  const [before, after] = [await told(plain), await told(client)]
  for (const block of [before, after]) t.equal(block.match(/violin lesson number/g)?.length, 3)
  t.not(after, before)
})

t.test('text-embeddings-inference, and Voyage’s answer', async t => {
  reranker.requests.length = 0
  const tei = answering(({ texts = [] }) =>
    positions(texts.length).map(index => ({ index, score: -index / 100 })),
  )
  reranker.respondAlways(tei)
  const before = await search(plain, 40)
  t.same(await search(await withReranker(t, { model: '' }), 40), before)
  t.match(JSON.parse(reranker.requests[0]!.body.toString()), {
    query,
    texts: [/violin/],
    truncate: true,
    documents: undefined,
  })
  reranker.respondAlways(
    answering(({ documents = [] }) => ({
      data: positions(documents.length).map(index => ({ index, relevance_score: index })),
    })),
  )
  const after = await search(await withReranker(t), 40)
  t.equal(after.memories[1]?.id, before.memories.at(-1)?.id)
})

t.test('without its answer everything is as without a reranker', async t => {
  const before = await search(plain, 5)
  const answers: Record<string, Responder> = {
    'an error': answering(() => ({ message: 'no' }), 500),
    'no JSON': (_, answer) => {
      answer.head(200, {})
      void answer.write('<html>')
      answer.end()
    },
    null: answering(() => null),
    'too few': answering(() => ({ results: [{ index: 0, relevance_score: 1 }] })),
    'one twice': answering(({ documents = [] }) => ({
      results: documents.map(() => ({ index: 0, relevance_score: 1 })),
    })),
    'no scores': answering(({ documents = [] }) => ({
      results: documents.map((_, index) => ({ index })),
    })),
    'a redirect': (_, answer) => {
      answer.head(302, { location: reranker.directOrigin })
      answer.end()
    },
    'a hang-up': (_, answer) => answer.cut(),
  }
  for (const [name, responder] of Object.entries(answers)) {
    reranker.respondAlways(responder)
    t.same(await search(await withReranker(t), 5), before, name)
  }
  reranker.respondAlways(() => {})
  t.same(await search(await withReranker(t, { timeoutMs: 50 }), 5), before, 'silence')
})

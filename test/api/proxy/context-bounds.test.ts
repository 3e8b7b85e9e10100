import t from 'tap'
import { countTokens } from '#shared/core/tokens.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** What a call is told has a bound in memories and one in tokens, and never breaks the call. */

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base, post } = await startTestApi(t, backend)
const key = await buildKey(backend)

const filler = 'Somebody talked about the weather, the trains, the news and the price of bread. '
const longNote = (i: number): string =>
  `${filler.repeat(12)}The telescope number ${i} stands in observatory ${i * 31}. ${filler.repeat(12)}`
await insertMemories(
  backend,
  key,
  Array.from({ length: 40 }, (_, i) => ({
    text: longNote(i),
    tokens: countTokens(longNote(i)),
    at: Date.now() - (i + 2) * 86_400_000,
  })),
)
const question = 'Where does my telescope stand, in which observatory?'

async function call(headers: Record<string, string> = {}, more: object = {}) {
  const before = provider.requests.length
  const named = { 'x-provider-key': providerKey('openai'), ...headers }
  const options = { headers: named, more }
  const response = await callModel(base, `${key}:read`, proxyDialects[0]!, question, options)
  await response.text()
  const sent = provider.requests.slice(before).map(({ body }) => body.toString())
  const injected = Number(response.headers.get('x-memory-tokens-injected'))
  const status = response.headers.get('x-memory-status')
  const lines = sent.at(-1)?.match(/UTC · user/g)?.length ?? 0
  return { code: response.status, sent, injected, status, lines }
}

const answerNext = (): void => provider.respondNext(respondJson(chatCompletion('There.')))

t.test('long memories are told by their passage, within 1,500 tokens', async t => {
  answerNext()
  const { status, injected, lines, sent } = await call()
  t.equal(status, 'ok')
  t.ok(injected > 100 && injected <= 1_600, `${injected} tokens`)
  t.ok(lines > 5, `${lines} lines`)
  t.match(sent[0], /telescope number \d+ stands in observatory/)
  const { body } = await post(
    '/v1/memory/prepare',
    { messages: [{ role: 'user', content: question }], density: 'xhigh' },
    { 'x-memory-key': key },
  )
  t.ok(body.memory_tokens > injected, 'a higher density has a higher bound')
})

t.test('headers and fields lower both bounds and are not forwarded', async t => {
  for (const [headers, more, max] of [
    [{ 'x-memory-context-limit': '2' }, {}, 2],
    [{}, { context_limit: 3 }, 3],
    [{ 'x-memory-context-limit': '5' }, { context_limit: 1, density: 'high' }, 1],
    [{ 'x-memory-density': 'low' }, {}, 12],
    [{}, { density: 'low', context_limit: null }, 12],
  ] as const) {
    answerNext()
    const { code, lines, sent } = await call({ ...headers }, more)
    t.equal(code, 200)
    t.ok(lines >= 1 && lines <= max, `${lines} of ${max}`)
    t.notMatch(sent[0], /context_limit|density/)
  }
  for (const headers of [
    { 'x-memory-context-limit': '0' },
    { 'x-memory-context-limit': 'many' },
    { 'x-memory-density': 'huge' },
  ])
    t.equal((await call(headers)).code, 400)
  t.equal((await call({}, { density: 'huge' })).code, 400)
})

t.test('a prompt that is too long is sent once more without the block', async t => {
  const tooLong = {
    error: {
      message: "This model's maximum context length is 8192 tokens.",
      code: 'context_length_exceeded',
    },
  }
  provider.respondNext(respondJson(tooLong, { status: 400 }))
  answerNext()
  const { code, status, injected, sent } = await call()
  t.same({ code, status, injected }, { code: 200, status: 'degraded', injected: 0 })
  t.same(
    sent.map(body => body.includes('memory_context')),
    [true, false],
  )
  provider.respondNext(respondJson({ error: { message: 'unknown field' } }, { status: 400 }))
  const other = await call()
  t.same([other.code, other.sent.length], [400, 1], 'another error is passed on')
})

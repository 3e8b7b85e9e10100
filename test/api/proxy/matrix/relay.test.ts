import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { goldenAnswers, type GoldenAnswer } from '#test/support/samples/golden/index.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { respondWith, splitBytes } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import {
  callModel,
  proxyDialects,
  type ProxyDialect,
} from '#test/support/samples/proxy-dialects.ts'

/** For each dialect: every golden answer reaches the client byte for byte, and what it says is stored. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

const said = 'What does my cat like?'

/** Calls a model as the client of a golden answer does. */
const ask = (
  key: string,
  dialect: ProxyDialect,
  { name }: GoldenAnswer,
  headers: Record<string, string> = {},
): Promise<Response> => {
  // Without `alt=sse` Gemini streams a list.
  const listed = { ...dialect, path: () => dialect.path(true).replace('?alt=sse', '') }
  const at = name.includes('array') ? listed : dialect
  return callModel(base, key, at, said, { stream: name.endsWith('.sse'), headers })
}

/** What of a golden answer and its question is stored; what is said beside a call of a tool is a step on the way. */
const storedOf = ({ reply }: GoldenAnswer): string[] => {
  const isAnswer = !reply.failed && !reply.isStep && reply.text.trim() !== ''
  return (isAnswer ? [reply.text, said] : [said]).toSorted()
}

/** The texts of each session, once no exchange is open. */
async function textsBySession(key: string): Promise<Map<string, string[]>> {
  await waitUntilIdle(backend)
  const sessions = Map.groupBy(await readDocuments(backend, key), ({ session }) => session)
  return new Map(
    [...sessions].map(([session, rows]) => [session, rows.map(({ text }) => text).toSorted()]),
  )
}

for (const dialect of proxyDialects) {
  const { format } = dialect
  const mine = goldenAnswers.filter(({ family }) => family === format)

  t.test(`${format}: every golden answer passes unchanged, and what it says is stored`, async t => {
    const key = await newKey()
    const expected = new Map<string, string[]>()
    for (const golden of mine) {
      const { name, contentType, bytes } = golden
      // Whole, and in pieces that fall inside events, lines and letters.
      for (const size of [bytes.length, 29]) {
        const session = `${name}, ${size}`
        expected.set(session, storedOf(golden))
        const headers = { 'content-type': contentType }
        provider.respondNext(respondWith(splitBytes(bytes, size), { headers }))
        const response = await ask(key, dialect, golden, { 'x-session-id': session })
        t.ok(Buffer.from(await response.arrayBuffer()).equals(bytes), `${name} by ${size}`)
        t.equal(response.headers.get('content-type'), contentType)
      }
    }
    t.same(await textsBySession(key), expected)
  })

  t.test(`${format}: each piece arrives when it is sent, not when the answer is whole`, async t => {
    const golden = mine.find(({ name }) => name.endsWith('/text.sse'))!
    const pieces = splitBytes(golden.bytes, Math.ceil(golden.bytes.length / 5))
    let allow = (): void => {}
    provider.respondNext(async (_seen, answer) => {
      answer.head(200, { 'content-type': 'text/event-stream' })
      for (const piece of pieces) {
        await new Promise<void>(resolve => (allow = resolve))
        await answer.write(piece)
      }
      answer.end()
    })
    const response = await ask(await newKey(), dialect, golden)
    t.equal(response.status, 200, 'the head is there before the first piece')
    const reader = response.body!.getReader()
    for (const piece of pieces) {
      allow()
      let heard = Buffer.alloc(0)
      while (heard.length < piece.length) {
        heard = Buffer.concat([heard, (await reader.read()).value ?? Buffer.alloc(1)])
      }
      t.ok(heard.equals(piece))
    }
    t.same(await reader.read(), { done: true, value: undefined })
  })
}

const openai = proxyDialects[0]!
const golden = (name: string): GoldenAnswer => goldenAnswers.find(one => one.name === name)!
const answers = [golden('openai/whole.json.txt'), golden('openai/text.sse')]
const compressions = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
}

t.test('an answer that is compressed all the same is passed on, and read', async t => {
  const key = await newKey()
  const expected = new Map<string, string[]>()
  for (const [name, compress] of Object.entries(compressions)) {
    for (const answer of answers) {
      const session = `${name} ${answer.name}`
      expected.set(session, storedOf(answer))
      const headers = { 'content-type': answer.contentType, 'content-encoding': name }
      provider.respondNext(respondWith(splitBytes(compress(answer.bytes), 97), { headers }))
      const response = await ask(key, openai, answer, { 'x-session-id': session })
      t.equal(response.status, 200)
      t.equal(await response.text(), answer.bytes.toString(), session)
    }
  }
  t.same(await textsBySession(key), expected)
})

t.test('a compressed answer that breaks off, an unknown encoding, and a page', async t => {
  const key = await newKey()
  const event = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n')
  const sse = 'text/event-stream'
  const cases: [
    session: string,
    bytes: Buffer,
    headers: Record<string, string>,
    reply: string[],
  ][] = [
    ['cut', gzipSync(event).subarray(0, -6), { 'content-encoding': 'gzip' }, ['Half']],
    ['odd', event, { 'content-encoding': 'odd' }, []],
    ['page', Buffer.from('<html>502 Bad Gateway</html>'), { 'content-type': 'text/html' }, []],
  ]
  for (const [session, bytes, headers] of cases) {
    provider.respondNext(respondWith([bytes], { headers: { 'content-type': sse, ...headers } }))
    const response = await ask(key, openai, answers[1]!, { 'x-session-id': session })
    t.equal(response.status, 200)
    t.equal(response.headers.get('content-type'), headers['content-type'] ?? sse)
    const text = await response.text()
    if (session !== 'cut') t.equal(text, bytes.toString())
  }
  const expected = cases.map(([session, , , reply]) => [session, [...reply, said].toSorted()])
  t.same(await textsBySession(key), new Map(expected as [string, string[]][]))
})

import t from 'tap'
import { parseLargeJson } from '#api/edge/parse-json.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { validateJson, validateSteps } from '#shared/core/json-validate.ts'
import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'

const mebibyte = 1024 * 1024

function countSteps<Result>(steps: Steps<Result>): { result: Result; count: number } {
  for (let count = 1; ; count++) {
    const { done, value } = steps.next()
    if (done) return { result: value, count }
  }
}

/** Texts whose JSON has escapes and characters of several bytes wherever it is cut. */
const hostileTexts = [
  'plain '.repeat(mebibyte / 2),
  '\\'.repeat(2 * mebibyte),
  `a${'\\'.repeat(2 * mebibyte)}`,
  '\\"'.repeat(mebibyte),
  '😀'.repeat(mebibyte),
  `é${'😀é'.repeat(mebibyte)}`,
  '\n\t"'.repeat(mebibyte),
  '\u0001'.repeat(mebibyte / 2),
]

t.test('a long text is decoded in steps to what it is at once', async t => {
  for (const text of hostileTexts) {
    const body = Buffer.from(` ${JSON.stringify(text)} `)
    const { result, count } = countSteps(parseLargeJson(body))
    t.ok(result === text, `${JSON.stringify(text.slice(0, 4))} of ${text.length}`)
    t.ok(count > 2 + countSteps(validateSteps(body)).count, `${count} steps`)
  }
  const escaped = Buffer.from(`"${'\\ud83d\\ude00'.repeat(mebibyte / 4)}"`)
  t.ok(runAtOnce(parseLargeJson(escaped)) === '😀'.repeat(mebibyte / 4))
})

t.test('JSON is checked in steps, the inside of a long text too', async t => {
  for (const text of hostileTexts) {
    const { result, count } = countSteps(
      validateSteps(Buffer.from(` {"a":${JSON.stringify(text)}}`)),
    )
    t.equal(result, 1)
    t.ok(count > 3, `${count} steps`)
  }
  const broken = Buffer.from(`{"a":"${'x'.repeat(3 * mebibyte)}\u0001"}`)
  t.throws(() => validateJson(broken), { message: /not valid JSON/ })
  t.throws(() => validateJson(broken.subarray(0, -4)), { message: /not valid JSON/ })
  const numbers = Buffer.from(`[${'1,'.repeat(2 * mebibyte)}1]`)
  t.ok(countSteps(validateSteps(numbers)).count > 6)
})

const turnsOf = (turns: number, length: number) =>
  Buffer.from(
    JSON.stringify({
      model: 'gpt-4o-mini',
      messages: Array.from({ length: turns }, (_, index) => ({
        role: index % 2 === 0 ? 'user' : 'assistant',
        content: `${index} `.padEnd(length, 'My cat is called Ada. '),
      })),
    }),
  )

t.test('a large request is the same, read in slices and at once', async t => {
  for (const body of [turnsOf(601, 5_000), turnsOf(1, 3 * mebibyte), turnsOf(20_001, 60)]) {
    const atOnce = dialects.openai.parseRequest(body)
    const sliced = await dialects.openai.parseInSlices(body)
    await sliced.readAhead()
    t.ok(sliced.userTurn!.fingerprint.equals(atOnce.userTurn!.fingerprint))
    const earlier = (request: typeof sliced) =>
      request.earlierTurns.map(({ fingerprint }) => fingerprint.toString('hex'))
    t.same(earlier(sliced), earlier(atOnce))
    // The beginning and the end of a message over 1 MiB are recalled for.
    const shown = ({ turns }: typeof sliced) =>
      JSON.stringify(turns.map(({ role, content }) => [role, (content as string).slice(0, 5_000)]))
    t.equal(shown(sliced), shown(atOnce))
    t.same(sliced.newMessages.length, atOnce.newMessages.length)
    t.ok(sliced.serialize({ context: 'block' }).equals(atOnce.serialize({ context: 'block' })))
  }
})

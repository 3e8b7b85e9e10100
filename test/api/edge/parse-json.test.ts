import fc from 'fast-check'
import t from 'tap'
import { parseJson, parseLargeJson } from '#api/edge/parse-json.ts'
import { runAtOnce } from '#shared/core/event-loop.ts'
import { leastHold, watchEventLoop } from '#test/support/checks/event-loop.ts'

const filler = 'x'.repeat(200_000)

t.test('property: JSON in steps is what JSON.parse has', async t => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      // Long enough that its lists and objects are walked.
      const value = { list: [one, filler, [other, filler]], inner: { filler, one, other } }
      const text = JSON.stringify(value, null, 1)
      t.strictSame(runAtOnce(parseLargeJson(Buffer.from(text))), JSON.parse(text))
    }),
    { numRuns: 60 },
  )
})

t.test('a field twice counts once, as it was last; what is no JSON is refused', async t => {
  const twice = Buffer.from(`{"a":"${filler}","a":2,"b":{},"b":{"c":1}}`)
  t.strictSame(runAtOnce(parseLargeJson(twice)), { a: 2, b: { c: 1 } })
  const large = filler.repeat(6)
  for (const text of [`{"a":"${large}",}`, `["${large}"`, `{"a":"${large}"} x`]) {
    await t.rejects(parseJson(Buffer.from(text)), { reason: 'invalid', message: /not valid JSON/ })
  }
  await t.rejects(parseJson(Buffer.from(`{"__proto__":{"a":1},"b":"${large}"}`)), {
    reason: 'invalid',
    message: /__proto__/,
  })
  t.strictSame(await parseJson(Buffer.from(`\uFEFF{"a":"${large}"}`)), { a: large })
})

t.test('no turn of the event loop is long while 18 MB of messages are parsed', async t => {
  const messages = Array.from({ length: 9_000 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `${index} `.padEnd(2_000, 'My "cat" is called Ada. '),
  }))
  const bytes = Buffer.from(JSON.stringify({ messages }))
  const share = await leastHold(
    3,
    least => least < 0.7,
    async () => {
      const before = process.threadCpuUsage()
      const stop = watchEventLoop()
      const value = (await parseJson(bytes)) as { messages: unknown[] }
      const longest = stop()
      const { user, system } = process.threadCpuUsage(before)
      t.equal(value.messages.length, messages.length)
      return longest / ((user + system) / 1_000)
    },
  )
  // In one turn it is all of it.
  t.ok(share < 0.7, `${share.toFixed(2)} of it in one turn`)
})

t.test('the levels of a large value are not each searched for their end first', async t => {
  const inner = '123456789012345,'.repeat(250_000)
  const bytes = Buffer.from(`${'['.repeat(60)}${inner}1${']'.repeat(60)}`)
  const share = await leastHold(
    5,
    least => least < 0.1,
    async () => {
      let longest = 0
      let all = 0
      for (const steps = parseLargeJson(bytes); ;) {
        const before = process.threadCpuUsage()
        const { done } = steps.next()
        const { user, system } = process.threadCpuUsage(before)
        longest = Math.max(longest, user + system)
        all += user + system
        if (done) return longest / all
      }
    },
  )
  t.ok(share < 0.1, `${share.toFixed(2)} of it in one step`)
})

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  canonicalJson,
  canonicalJsonSteps,
  updateHashInSteps,
} from '#shared/core/canonical-json.ts'
import { runAtOnce, runInSlices } from '#shared/core/event-loop.ts'
import { watchEventLoop } from '#test/support/event-loop.ts'

/** The first form of the fingerprint: claims of the last release must stay known to the next. */
const firstForm = (value: unknown): string =>
  JSON.stringify(value ?? null, (_, field: unknown) => {
    if (typeof field !== 'object' || field === null || Array.isArray(field)) return field
    const fields = field as Record<string, unknown>
    return Object.fromEntries(
      Object.keys(fields)
        .sort()
        .map(name => [name, fields[name]]),
    )
  })

t.test('property: the text is that of the first release', async t => {
  const anyText = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), anyText, (value, text) => {
      for (const each of [value, { b: value, a: [text, value], 10: 1, 9: 2, [text]: undefined }])
        t.equal(canonicalJson(each), firstForm(each))
    }),
    { numRuns: 300 },
  )
  for (const value of [undefined, null, 0, -0, NaN, '', [], {}, [undefined, 1], { a: undefined }])
    t.equal(canonicalJson(value), firstForm(value))
  const proto = JSON.parse('{"z":1,"__proto__":{"b":1,"a":2}}') as object
  t.equal(canonicalJson(proto), firstForm(proto))
})

t.test('long texts are written in pieces that cut no character', async t => {
  for (const unit of ['x', '😀', 'é', '\n"\\', '\ud83d', '\ude00', 'a😀'])
    for (const start of ['', 'b']) {
      const value = { text: start + unit.repeat(200_000), list: [unit.repeat(70_000)] }
      const pieces = runAtOnce(canonicalJsonSteps(value))
      t.ok(pieces.length > 3, `${pieces.length} pieces`)
      t.ok(pieces.join('') === firstForm(value), JSON.stringify(unit))
      const hash = createHash('sha256')
      runAtOnce(updateHashInSteps(hash, pieces))
      t.equal(hash.digest('hex'), createHash('sha256').update(firstForm(value)).digest('hex'))
    }
})

t.test('no turn of the event loop is long, of one long text or of many short ones', async t => {
  const prose = 'My "cat" is called Ada, she was born in May. '
  for (const [name, value] of [
    ['one text', { text: prose.repeat(400_000) }],
    [
      'short texts',
      Array.from({ length: 90_000 }, (_, at) => ({ role: 'user', text: prose + at })),
    ],
    ['numbers', Array.from({ length: 2_000_000 }, (_, at) => at)],
    ['bytes', undefined],
  ] as const) {
    const before = process.threadCpuUsage()
    const stop = watchEventLoop()
    const hash = createHash('sha256')
    const parts = value
      ? await runInSlices(canonicalJsonSteps(value))
      : [new Uint8Array(64 * 1024 * 1024)]
    await runInSlices(updateHashInSteps(hash, parts))
    const longest = stop()
    const { user, system } = process.threadCpuUsage(before)
    const all = (user + system) / 1_000
    t.comment(`${name}: ${longest.toFixed(0)} of ${all.toFixed(0)} ms at most in one turn`)
    t.ok(longest < all / 2, `${name}: ${longest} of ${all} ms`)
  }
})

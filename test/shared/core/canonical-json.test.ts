import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  canonicalJson,
  canonicalJsonSteps,
  updateHashInSteps,
} from '#shared/core/canonical-json.ts'
import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import { anyText } from '#test/support/samples/any-text.ts'

/** The same text, written at once. */
function plainForm(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plainForm).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  fields.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${plainForm(field)}`).join(',')}}`
}

t.test('property: the fields of every object stand in the order of their names', async t => {
  fc.assert(
    fc.property(
      fc.jsonValue({ stringUnit: 'grapheme' }),
      anyText(),
      anyText(),
      (value, text, other) => {
        const mixed = { b: value, a: [text, value], 10: 1, 9: 2, [text]: undefined, [other]: 1 }
        for (const each of [value, mixed]) t.equal(canonicalJson(each), plainForm(each))
      },
    ),
    { numRuns: 300 },
  )
  for (const value of [undefined, null, 0, -0, NaN, '', [], {}, [undefined, 1], { a: undefined }])
    t.equal(canonicalJson(value), plainForm(value))
  const proto = JSON.parse('{"z":1,"__proto__":{"b":1,"a":2}}') as object
  t.equal(canonicalJson(proto), plainForm(proto))
})

t.test('long texts are written in pieces that cut no character', async t => {
  for (const unit of ['x', '😀', 'é', '\n"\\', '\ud83d', '\ude00', 'a😀'])
    for (const start of ['', 'b']) {
      const value = { text: start + unit.repeat(90_000), list: [unit.repeat(70_000)] }
      const pieces = runAtOnce(canonicalJsonSteps(value))
      t.ok(pieces.length > 3, `${pieces.length} pieces`)
      t.ok(pieces.join('') === plainForm(value), JSON.stringify(unit))
      const hash = createHash('sha256')
      runAtOnce(updateHashInSteps(hash, pieces))
      t.equal(hash.digest('hex'), createHash('sha256').update(plainForm(value)).digest('hex'))
    }
})

/** The steps of a work: between two of them others are served. */
function countSteps<Result>(steps: Steps<Result>): { count: number; value: Result } {
  for (let count = 0; ; count++) {
    const { done, value } = steps.next()
    if (done) return { count, value }
  }
}

t.test('no step is long, of one long text or of many short ones', async t => {
  const prose = 'My "cat" is called Ada, she was born in May. '
  for (const [name, value] of [
    ['one text', { text: prose.repeat(40_000) }],
    [
      'short texts',
      Array.from({ length: 20_000 }, (_, at) => ({ role: 'user', text: prose + at })),
    ],
    ['numbers', Array.from({ length: 200_000 }, (_, at) => at)],
  ] as const) {
    const { count, value: pieces } = countSteps(canonicalJsonSteps(value))
    const longest = Math.max(...pieces.map(piece => piece.length))
    t.ok(longest < 256 * 1024, `${name}: pieces of ${longest} characters at most`)
    t.ok(count >= pieces.length - 1, `${name}: ${count} steps for ${pieces.length} pieces`)
    const hashed = countSteps(updateHashInSteps(createHash('sha256'), pieces))
    t.equal(hashed.count, pieces.length, `${name}: each is hashed in a step`)
  }
  const bytes = new Uint8Array(8 * 1024 * 1024)
  const { count } = countSteps(updateHashInSteps(createHash('sha256'), [bytes]))
  t.ok(count >= 8, `${count} steps for 8 MiB`)
})

import t from 'tap'
import fc from 'fast-check'
import { JsonFieldReader } from '#api/proxy/json/field-reader.ts'
import { chance, written } from '#test/api/proxy/json/written.ts'

type Picked = { values: unknown[]; truncated: boolean }

function picked(chunks: readonly Uint8Array[], names: readonly string[], textMax = 1e6): Picked {
  const values: unknown[] = []
  const reader = new JsonFieldReader(new Set(names), textMax, value => values.push(value))
  for (const chunk of chunks) reader.feed(chunk)
  return { values, truncated: reader.isTruncated() }
}

const names = ['a', 'b', 'text']

/** What is left of a value when only the wanted names are kept. */
function kept(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(kept)
  if (typeof value !== 'object' || value === null) return value
  const wanted = Object.entries(value).filter(([name]) => names.includes(name))
  return Object.fromEntries(wanted.map(([name, one]) => [name, kept(one)]))
}

const { value: some } = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 5, depthIdentifier: 'picked' },
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4, depthIdentifier: 'picked' }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'text', 'data'), tie('value'), {
      maxKeys: 4,
      depthIdentifier: 'picked',
    }),
  ),
}))

const object = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'text'), some, { maxKeys: 4 })

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

t.test('of a whole object, or of each in an array, the wanted members are kept', async t => {
  const whole = fc.oneof(object, fc.array(fc.oneof(object, some), { maxLength: 4 }))
  const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })
  const holds = fc.property(whole, chance, places, (value, random, places) => {
    const bytes = Buffer.from(written(value, random).text)
    const cuts = [0, ...places.map(one => Math.floor(one * bytes.length)).sort((a, b) => a - b)]
    const chunks = [...cuts, bytes.length].slice(1).map((end, at) => bytes.subarray(cuts[at], end))
    const expected = Array.isArray(value) ? value.filter(isObject) : [value]
    t.strictSame(picked(chunks, names), { values: expected.map(kept), truncated: false })
  })
  fc.assert(holds, { numRuns: 700 })
})

t.test('a text is kept up to the bound, in whole characters and escapes', async t => {
  const texts = [
    'aaaaaaaaaaaa',
    'üüüüüüüü',
    '猫猫猫猫猫',
    '🐱🐱🐱🐱',
    '"\\"\\"\\"\\',
    '\u0001\u0002\u0003',
  ]
  for (const text of texts) {
    for (let max = 0; max < 40; max++) {
      const bytes = Buffer.from(JSON.stringify({ a: text, b: 'next' }))
      const { values, truncated } = picked([bytes], names, max)
      const { a = '' } = values[0] as { a?: string }
      t.ok(text.startsWith(a.replace(/[\uD800-\uDBFF]$/, '')), `${a} of ${text}`)
      t.equal(truncated, Buffer.byteLength(JSON.stringify(text)) - 2 + 4 > max)
    }
  }
})

t.test('each element of an array has its own bound', async t => {
  const bytes = Buffer.from(JSON.stringify([{ a: 'four' }, { a: 'four' }, { a: 'fours' }]))
  t.same(picked([bytes], names, 4), {
    values: [{ a: 'four' }, { a: 'four' }, { a: 'four' }],
    truncated: true,
  })
})

t.test('what nests too deep or has too many values is left out and said so', async t => {
  const deep = picked(
    [Buffer.from(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)},"b":1}`)],
    names,
  )
  t.match(deep, { values: [{ b: 1 }] })
  const many = picked([Buffer.from(`{"a":[${'1,'.repeat(200_000)}1],"b":1}`)], names)
  t.equal(many.truncated, true)
  t.ok((many.values[0] as { a: unknown[] }).a.length <= 100_000)
})

t.test('broken JSON is read without complaint', async t => {
  const texts = [
    '}',
    ']]]]',
    '{"a":',
    '{"a" "b"}',
    '{"a":tru,"b":1}',
    '"',
    '{"a":"\\',
    '[{"a":1}',
    '{"a":1}}{"b":2}',
  ]
  for (const text of texts) t.ok(picked([Buffer.from(text)], names).values.length <= 2, text)
  t.strictSame(picked([Buffer.from('[{"a":1},{"b":')], names).values, [{ a: 1 }])
})

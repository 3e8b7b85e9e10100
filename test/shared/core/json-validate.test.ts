import t from 'tap'
import fc from 'fast-check'
import { createSkipUnescaped, validateJson } from '#shared/core/json-validate.ts'
import { chance, written } from '#test/api/proxy/json/written.ts'

const refusalOf = (bytes: Uint8Array): unknown => {
  try {
    validateJson(bytes)
    return undefined
  } catch (error) {
    return error
  }
}

const parses = (bytes: Buffer): boolean => {
  try {
    JSON.parse(new TextDecoder().decode(bytes))
    return true
  } catch {
    return false
  }
}

const invalid = { name: 'Refusal', reason: 'invalid', message: 'The body is not valid JSON' }

t.test('what JSON.parse takes is taken, however it is written', async t => {
  const holds = fc.property(fc.jsonValue({ maxDepth: 6 }), chance, (value, random) => {
    const bytes = Buffer.from(written(value, random).text)
    t.equal(refusalOf(bytes), undefined, bytes.toString())
  })
  fc.assert(holds, { numRuns: 500 })
})

t.test(
  'what JSON.parse refuses is refused: a byte more, less or other than it should be',
  async t => {
    const byte = fc.oneof(
      fc.constantFrom(...Buffer.from('{}[]",:\\ \n\t0123456789-+.eEtrufalsn/b\u0000\u001F')),
      fc.nat({ max: 255 }),
    )
    const change = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      byte,
      kind: fc.nat({ max: 2 }),
    })
    let refused = 0
    const holds = fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      chance,
      fc.array(change, { minLength: 1, maxLength: 3 }),
      (value, random, changes) => {
        const all = [...Buffer.from(written(value, random).text)]
        for (const { at, byte, kind } of changes) {
          all.splice(Math.floor(at * all.length), kind === 0 ? 0 : 1, ...(kind === 1 ? [] : [byte]))
        }
        const bytes = Buffer.from(all)
        const refusal = refusalOf(bytes)
        if (refusal) refused++
        if ((refusal === undefined) !== parses(bytes))
          t.fail(JSON.stringify(bytes.toString('latin1')))
        if (refusal) t.match(refusal, invalid)
      },
    )
    fc.assert(holds, { numRuns: 3_000 })
    t.ok(refused > 500 && refused < 3_000, `${refused} of 3000`)
  },
)

t.test('every wrong spelling of a number, word, string or structure is refused', async t => {
  const wrong = [
    ['', ' ', '01', '-', '+1', '1.', '.5', '1e', '1e+', '0x10', '1_0', 'NaN', 'Infinity', '--1'],
    ['tru', 'nulll', 'True', 'undefined', "'a'", '"a', '"\\x41"', '"\\u12g4"', '"\\u123', '"\\'],
    ['"a\nb"', '"a\u0000b"', '"\t"', '[1,]', '[,1]', '[1 2]', '[1', ']', '[1}', '{"a":1]', '{"a"}'],
    [
      '{"a":}',
      '{a:1}',
      '{"a":1,}',
      '{,}',
      '{"a":1 "b":2}',
      '{"a":1',
      '1 2',
      '{} {}',
      '[]]',
      '//',
      '\u00A01',
    ],
  ].flat()
  for (const text of wrong) t.match(refusalOf(Buffer.from(text)), invalid, JSON.stringify(text))
})

t.test('a byte order mark is passed over, once', async t => {
  t.equal(validateJson(Buffer.from('\uFEFF {}')), 4)
  t.match(refusalOf(Buffer.from('\uFEFF\uFEFF{}')), invalid)
})

t.test('ten thousand levels are read, more are refused however many', async t => {
  t.equal(refusalOf(Buffer.from('[{"a":'.repeat(5_000) + '1' + '}]'.repeat(5_000))), undefined)
  const deep = { name: 'Refusal', reason: 'invalid', message: /deeper than 10000 levels/ }
  t.match(refusalOf(Buffer.from('['.repeat(10_001) + ']'.repeat(10_001))), deep)
  t.match(refusalOf(Buffer.from('['.repeat(200_000) + ']'.repeat(200_000))), deep)
  t.match(refusalOf(Buffer.from('{"a":'.repeat(5_000_000))), deep)
})

/** As the grammar of JSON says it. */
function firstEscaped(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return at
  }
  return end
}

/** Bytes at any place in the memory behind them. */
const placed = (bytes: Uint8Array, offset: number): Uint8Array => {
  const memory = new Uint8Array(offset + bytes.length + 3).fill(0x22)
  memory.set(bytes, offset)
  return memory.subarray(offset, offset + bytes.length)
}

t.test('every byte value stops the scan or does not, at every place of a long string', async t => {
  const wrong: string[] = []
  for (let offset = 0; offset < 4; offset++) {
    for (let value = 0; value < 256; value++) {
      for (let at = 30; at < 38; at++) {
        const plain = new Uint8Array(64).fill(0x61)
        plain[at] = value
        const bytes = placed(plain, offset)
        const found = createSkipUnescaped(bytes)(0, bytes.length)
        if (found !== firstEscaped(bytes, 0, 64))
          wrong.push(`${value} at ${at} of ${offset}: ${found}`)
      }
    }
  }
  t.same(wrong, [])
})

t.test('neighbours do not change what a byte does', async t => {
  const near = fc.constantFrom(0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xff, 0)
  const run = fc.oneof(
    fc.array(near, { maxLength: 6 }),
    fc.nat({ max: 80 }).map(length => Array<number>(length).fill(0x61)),
  )
  const holds = fc.property(
    fc.array(run, { maxLength: 12 }),
    fc.nat({ max: 3 }),
    fc.nat({ max: 100 }),
    fc.nat({ max: 600 }),
    (runs, offset, from, length) => {
      const bytes = placed(Uint8Array.from(runs.flat()), offset)
      const start = Math.min(from, bytes.length)
      const end = Math.min(bytes.length, start + length)
      const skip = createSkipUnescaped(bytes)
      for (let at = start; at <= end; at++) {
        const found = skip(at, end)
        if (found !== firstEscaped(bytes, at, end)) return false
      }
      return true
    },
  )
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 2_000 }))
})

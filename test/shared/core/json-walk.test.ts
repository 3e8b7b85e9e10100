import t from 'tap'
import fc from 'fast-check'
import { validateJson } from '#shared/core/json-validate.ts'
import { MemberRemovals, Splices, type Removals } from '#api/proxy/json/splice.ts'
import {
  endingQuote,
  forEachElement,
  forEachMember,
  kindAt,
  createNameMatcher,
  parseValue,
  valueEnd,
} from '#shared/core/json-walk.ts'
import { chance, written } from '#test/api/proxy/json/written.ts'

/** Built up by walking alone, so that every place a visitor is shown must be right. */
function walked(bytes: Buffer, at: number): { value: unknown; end: number } {
  const kind = kindAt(bytes, at)
  if (kind === 'array') {
    const value: unknown[] = []
    const end = forEachElement(bytes, at, element => {
      const inner = walked(bytes, element)
      value.push(inner.value)
      return inner.end
    })
    return { value, end }
  }
  if (kind === 'object') {
    const value: [unknown, unknown][] = []
    const end = forEachMember(bytes, at, (name, nameEnd, member) => {
      const inner = walked(bytes, member)
      value.push([parseValue(bytes, name, nameEnd), inner.value])
      return inner.end
    })
    return { value: Object.fromEntries(value as [string, unknown][]), end }
  }
  const end = valueEnd(bytes, at)
  return { value: parseValue(bytes, at, end), end }
}

t.test('walking finds what parsing finds, and where it ends', async t => {
  const holds = fc.property(fc.jsonValue({ maxDepth: 5 }), chance, (value, random) => {
    const bytes = Buffer.from(` ${written(value, random).text}\n`)
    const start = validateJson(bytes)
    const { value: found, end } = walked(bytes, start)
    t.strictSame(found, JSON.parse(bytes.toString()))
    t.equal(valueEnd(bytes, start), end)
    t.equal(bytes.toString('utf8', end).trim(), '')
  })
  fc.assert(holds, { numRuns: 500 })
})

t.test('a string ends at its own quote, near or far, behind any run of backslashes', async t => {
  for (const length of [0, 1, 15, 30, 31, 32, 33, 34, 64, 1_000]) {
    for (let slashes = 0; slashes < 6; slashes++) {
      const text = 'x'.repeat(length) + '\\'.repeat(slashes)
      for (const inside of [text, `${text}"`, `${text}"${text}`]) {
        const bytes = Buffer.from(`[${JSON.stringify(inside)},"next"]`)
        t.equal(parseValue(bytes, 1, valueEnd(bytes, 1)), inside)
      }
    }
  }
})

t.test(
  'the end of a text is found in chunks as in the whole, and what breaks off ends',
  async t => {
    const text = fc.string({
      unit: fc.constantFrom('a', '"', '\\', 'long '.repeat(9)),
      maxLength: 12,
    })
    const holds = fc.property(text, fc.integer({ min: 1, max: 60 }), (inside, size) => {
      const bytes = Buffer.from(`${JSON.stringify(inside)}, "next"`)
      let ahead = 1
      for (let start = 0; ; start += size) {
        const chunk = bytes.subarray(start, start + size)
        const at = endingQuote(chunk, ahead)
        ahead = at - chunk.length
        if (ahead >= 0) continue
        return parseValue(bytes, 0, start + at + 1) === inside
      }
    })
    fc.assert(holds, { numRuns: 2_000 })
    const whole = Buffer.from('{"a":[1,{"b":"c\\"d"}],"e":2}')
    for (let length = 0; length < whole.length; length++) {
      const part = whole.subarray(0, length)
      t.ok(valueEnd(part, 0) >= length)
      t.ok(forEachMember(part, 0, () => undefined) > length)
    }
  },
)

t.test('a name is known however it is escaped, and no other is taken for it', async t => {
  const names = createNameMatcher(['memory', 'model', '__proto__'])
  const known = (text: string): string | undefined => {
    const bytes = Buffer.from(text)
    return names(bytes, 0, bytes.length)
  }
  t.equal(known('"memory"'), 'memory')
  t.equal(known(String.raw`"\u006d\u0065\u006D\u006f\u0072\u0079"`), 'memory')
  t.equal(known(String.raw`"mode\u006c"`), 'model')
  t.equal(known('"__proto__"'), '__proto__')
  for (const other of ['""', '"m"', '"memorz"', '"Memory"', '"memory "', '"constructor"']) {
    t.equal(known(other), undefined)
  }
  t.equal(known(String.raw`"memory\u0000"`), undefined)
  t.equal(known(`"${'memory'.repeat(200_000)}"`), undefined)
})

t.test('a dropped member takes one comma with it, and nothing else', async t => {
  const drop = createNameMatcher(['x'])
  const cases = {
    '{"x":1}': '{}',
    '{ "x":1 }': '{  }',
    '{"x":1,"a":2}': '{"a":2}',
    '{"a":2, "x":1}': '{"a":2}',
    '{ "a" : 2 , "x" : [1,{"x":1}] , "b":3 }': '{ "a" : 2 , "b":3 }',
    '{"x":1,"x":2,"a":1,"x":3,"x":4}': '{"a":1}',
    '{"x":1,"x":2}': '{}',
    '{"a":{"x":1}}': '{"a":{"x":1}}',
  }
  for (const [text, expected] of Object.entries(cases)) {
    const bytes = Buffer.from(text)
    const removals: Removals = []
    const cuts = new MemberRemovals(removals)
    const end = forEachMember(bytes, 0, (name, nameEnd, value) => {
      const memberEnd = valueEnd(bytes, value)
      if (drop(bytes, name, nameEnd)) cuts.remove(name, memberEnd)
      else cuts.retain(name, memberEnd)
      return memberEnd
    })
    cuts.finish()
    t.equal(new Splices(removals, []).apply(bytes).toString(), expected)
    t.equal(end, bytes.length)
  }
})

t.test('cuts and inserts are made at their places, in any order and side by side', async t => {
  const bytes = Buffer.from('0123456789')
  const inserts = [
    { at: 9, end: 10, text: 'nine' },
    { at: 0, text: '<' },
    { at: 4, text: 'ü' },
  ]
  const splices = new Splices([1, 3, 4, 6], inserts)
  t.equal(splices.apply(bytes).toString(), '<03ü678nine')
  t.same(
    splices.insertedSpans().map(({ insertion, at, bytes }) => [insertion.text, at, bytes]),
    [
      ['<', 0, 1],
      ['ü', 3, 2],
      ['nine', 8, 4],
    ],
  )
  t.same(
    [0, 1, 4, 5, 6, 9, 10].map(offset => splices.movedOffset(offset)),
    [0, 2, 3, 5, 5, 8, 12],
  )
  t.equal(new Splices([], [{ at: 10, text: '>' }]).apply(bytes).toString(), '0123456789>')
  t.equal(new Splices([], []).apply(bytes), bytes)
})

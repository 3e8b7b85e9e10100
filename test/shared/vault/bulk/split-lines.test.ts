import fc from 'fast-check'
import t from 'tap'
import { splitLines, type LineLimits } from '#shared/vault/bulk/split-lines.ts'

const limits: LineLimits = { lineBytesMax: 64, bytesMax: 10_000, linesMax: 100 }

async function* inPieces(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const ends = [...new Set(cuts.map(cut => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  let start = 0
  for (const end of [...ends, bytes.length]) {
    yield bytes.subarray(start, end)
    start = end
  }
}

async function read(text: string | Uint8Array, cuts: number[] = [], bounds = limits) {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  const lines: [number, string][] = []
  for await (const line of splitLines(inPieces(bytes, cuts), bounds))
    lines.push([line.number, Buffer.from(line.bytes).toString()])
  return lines
}

t.test('lines are those of a split, however the bytes are cut up', async t => {
  const part = fc.constantFrom('a', '{"x":1}', '', ' ', '\t', 'ü', '日本', '🚲', '\uFEFF')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(part, fc.constantFrom('\n', '\r\n')), { maxLength: 30 }),
      part,
      fc.boolean(),
      fc.array(fc.nat(), { maxLength: 12 }),
      async (parts, last, marked, cuts) => {
        const body = parts.map(([text, end]) => text + end).join('') + last
        const read_ = await read((marked ? '\uFEFF' : '') + body, cuts)
        const first = marked ? body : body.replace(/^\uFEFF/, '')
        const expected = first
          .split('\n')
          .map((text, index): [number, string] => [index + 1, text.replace(/\r$/, '')])
          .filter(([, text]) => !/^[ \t\r]*$/.test(text))
        return JSON.stringify(read_) === JSON.stringify(expected)
      },
    ),
    { numRuns: 500 },
  )
  t.pass('500 files')
})

t.test('a line as long as the limit passes, with CRLF and a byte order mark too', async t => {
  const line = 'x'.repeat(64)
  for (const text of [line, `${line}\n`, `${line}\r\n`, `\uFEFF${line}\r\n`])
    t.same(await read(text, [1, 2, 65]), [[1, line]])
})

t.test('a longer line is marked and left out, the others are read', async t => {
  const text = `a\n\n${'x'.repeat(65)}\nb\n${'x'.repeat(1_000)}`
  for (const cuts of [[], [1, 5, 40, 67, 68, 69, 70, 90]]) {
    const found: [number, string, boolean][] = []
    for await (const { number, bytes, isTooLong } of splitLines(
      inPieces(Buffer.from(text), cuts),
      limits,
    )) {
      found.push([number, Buffer.from(bytes).toString(), isTooLong])
    }
    t.same(found, [
      [1, 'a', false],
      [3, '', true],
      [4, 'b', false],
      [5, '', true],
    ])
  }
})

t.test('a line is as long as what its escapes stand for, within a bound of its own', async t => {
  const escapedOf = (text: string): string =>
    text.replaceAll(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const isTaken = async (line: string): Promise<boolean> => {
    const bounds = { ...limits, escapedBytesMax: 6 * limits.lineBytesMax }
    return (await read(line, [], bounds))[0]![1] === line
  }
  const character = fc.constantFrom('a', 'ü', '日', '🚲', '\u0301', '"', '\\', '\n')
  await fc.assert(
    fc.asyncProperty(fc.array(character, { minLength: 1, maxLength: 70 }), async parts => {
      const plain = parts.join('')
      const length = Buffer.byteLength(plain)
      const spelled = JSON.stringify(plain)
      // The two quotation marks.
      const fits = length + 2 <= limits.lineBytesMax
      return (await isTaken(spelled)) === fits && (await isTaken(escapedOf(spelled))) === fits
    }),
    { numRuns: 500 },
  )
  t.notOk(await isTaken('x'.repeat(65)), 'without escapes as before')
  t.notOk(await isTaken('\\u0041'.repeat(65)), 'over the bytes of escaped lines')
})

t.test('lines of application/json-seq begin with a record separator', async t => {
  t.same(await read('\u001e{"a":1}\n\u001e{"a":2}\n'), [
    [1, '{"a":1}'],
    [2, '{"a":2}'],
  ])
})

t.test('too-large: a line that never ends, once the file is too large', async t => {
  const refused = { reason: 'too-large', message: /^The file is larger/ }
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('a\n\n')
    for (;;) yield Buffer.alloc(50, 'x')
  }
  await t.rejects(async () => {
    for await (const _ of splitLines(endless(), limits));
  }, refused)
})

t.test('too-large: more lines or bytes than there may be; blank lines do not count', async t => {
  const bounds = { ...limits, linesMax: 3 }
  t.equal((await read('a\n\nb\n \nc\n\n', [], bounds)).length, 3)
  await t.rejects(read('a\nb\nc\nd', [], bounds), {
    reason: 'too-large',
    message: 'The file has more than 3 lines',
  })
  await t.rejects(read('\n'.repeat(10_001)), {
    reason: 'too-large',
    message: /^The file is larger/,
  })
})

t.test('a file without a byte has no line', async t => {
  t.same(await read(''), [])
  t.same(await read('\uFEFF'), [])
  t.same(await read('\r\n\n'), [])
})

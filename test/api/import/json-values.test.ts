import t from 'tap'
import { readJsonValues } from '#api/import/json-values.ts'

async function read(text: string | Uint8Array, chunkBytes = 1 << 20): Promise<unknown[]> {
  const bytes = Buffer.from(text)
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  const values: unknown[] = []
  for await (const value of readJsonValues(source(), 'x.json')) values.push(value)
  return values
}

const values = [
  { a: 'br]ack}et "quoted" \\', b: [[1], { c: null }], grüße: '🚲' },
  ['nested', []],
  'text, with "signs" ]',
  -1.5e3,
  true,
  null,
  {},
]

t.test('elements of an array, JSON lines, single values: wherever the bytes are cut', async t => {
  const spaced = JSON.stringify(values, null, 2)
  const lines = values.filter(value => !Array.isArray(value)).map(value => JSON.stringify(value))
  for (let chunkBytes = 1; chunkBytes < 40; chunkBytes++) {
    t.same(await read(JSON.stringify(values), chunkBytes), values)
    t.same(await read(spaced, chunkBytes), values)
    t.same(
      await read(`\uFEFF${lines.join('\r\n')}\n`, chunkBytes),
      values.filter(value => !Array.isArray(value)),
    )
  }
  t.same(await read('{"one":1}'), [{ one: 1 }])
  t.same(await read('[]'), [])
  t.same(await read('7'), [7])
  t.same(await read('[1][2]\n3'), [1, 2, 3], 'pages one after the other')
})

t.test('what Python and PowerShell write is read: NaN, Infinity, UTF-16', async t => {
  t.same(await read('[{"score":NaN,"a":"-NaN \\" Infinity","b":[-Infinity, Infinity]}]'), [
    { score: null, a: '-NaN " Infinity', b: [null, null] },
  ])
  const text = Buffer.from('\uFEFF[{"a":"grüße 🚲"}]', 'utf16le')
  t.same(await read(text, 9), [{ a: 'grüße 🚲' }])
  t.same(await read(Buffer.from(text).swap16(), 9), [{ a: 'grüße 🚲' }])
})

t.test('what is no JSON, or only its beginning, is refused by its place', async t => {
  await t.rejects(read('[{"a":1},{"b":'), { reason: 'invalid', message: /ends in the middle/ })
  await t.rejects(read('[1,2'), { message: /ends in the middle/ })
  await t.rejects(read('"half'), { message: /ends in the middle/ })
  await t.rejects(read('<html><body>'), {
    reason: 'invalid',
    message: /not JSON at character 0: "<html/,
  })
  await t.rejects(read('[{"a":1},{a:1}]', 3), { message: /not JSON at character 9: "\{a:1\}"/ })
})

import fc from 'fast-check'
import t from 'tap'
import { readMultipartForm } from '#api/proxy/multipart-form.ts'

const boundary = 'xYz'
const type = `multipart/form-data; boundary=${boundary}`

type Part = { name: string; filename?: string; value: Buffer | string }

const formOf = (parts: readonly Part[], preamble = ''): Buffer =>
  Buffer.concat([
    Buffer.from(preamble),
    ...parts.flatMap(({ name, filename, value }) => [
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"` +
          `${filename === undefined ? '' : `; filename="${filename}"`}\r\n\r\n`,
      ),
      Buffer.from(value as string),
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

/** The bytes in pieces of these sizes, round and round; and how many pieces were taken. */
function inPieces(bytes: Buffer, sizes: readonly number[]) {
  const taken = { pieces: 0, ended: false }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      for (let at = 0, index = 0; at < bytes.length; index++) {
        const size = sizes[index % sizes.length]!
        taken.pieces++
        yield bytes.subarray(at, at + size)
        at += size
      }
    } finally {
      taken.ended = true
    }
  }
  return { taken, pieces: pieces() }
}

async function joined(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const part: fc.Arbitrary<Part> = fc.record(
  {
    name: fc.constantFrom('file', 'language', 'models', 'model[]', 'prompt'),
    filename: fc.constantFrom('a.mp3', 'model', 'name="model"'),
    value: fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
      fc.constantFrom('\r\n--xY', '\r\n--', 'name="model"\r\n\r\nfake\r\n', ''),
    ),
  },
  { requiredKeys: ['name', 'value'] },
)

t.test(
  'the model is found in any order and any pieces, and no byte is lost or changed',
  async t => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { maxLength: 4 }),
        fc.array(part, { maxLength: 4 }),
        fc.stringMatching(/^[a-z/0-9.-]{1,40}$/),
        fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 5 }),
        async (before, after, model, sizes) => {
          const parts = [...before, { name: 'model', value: model }, ...after]
          const bytes = formOf(parts)
          const same = await readMultipartForm(inPieces(bytes, sizes).pieces, type)
          if (same.model !== model) throw new Error(`found ${same.model}`)
          if (!(await joined(same.bytes())).equals(bytes)) throw new Error('other bytes')

          const other = await readMultipartForm(inPieces(bytes, sizes).pieces, type, {
            byteLength: bytes.length,
          })
          const renamed = formOf([...before, { name: 'model', value: 'renamed' }, ...after])
          if (!(await joined(other.bytes('renamed'))).equals(renamed))
            throw new Error('badly renamed')
          if (other.byteLength('renamed') !== renamed.length) throw new Error('length')
        },
      ),
      { numRuns: 300, seed: 20_261_121 },
    )
    t.pass('300 forms')
  },
)

t.test('a model before the recording: the recording is not read until it is asked for', async t => {
  const recording = Buffer.alloc(1_000_000, 7)
  const bytes = formOf([
    { name: 'model', value: 'whisper-1' },
    { name: 'file', filename: 'a.mp3', value: recording },
  ])
  const { taken, pieces } = inPieces(bytes, [10_000])
  const form = await readMultipartForm(pieces, type)
  t.equal(taken.pieces, 1)
  t.ok((await joined(form.bytes())).equals(bytes))
  t.ok(taken.ended)
})

t.test('what nobody asks for is dropped', async t => {
  const { taken, pieces } = inPieces(formOf([{ name: 'model', value: 'm' }]), [60])
  const form = await readMultipartForm(pieces, type)
  await form.discard()
  t.ok(taken.ended)
  await form.discard()
})

t.test('invalid: no model, no form, no boundary', async t => {
  const found = (bytes: Buffer | string, contentType = type) =>
    readMultipartForm(inPieces(Buffer.from(bytes as string), [50]).pieces, contentType)
  const noModel = { reason: 'invalid', message: /no field model/ }
  await t.rejects(found(formOf([{ name: 'file', value: 'x' }])), noModel)
  await t.rejects(found(formOf([])), noModel)
  await t.rejects(found(''), noModel)
  await t.rejects(
    found(`--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\ncut`),
    noModel,
  )
  await t.rejects(found(formOf([{ name: 'model', value: 'x'.repeat(20_000) }])), noModel)
  const noForm = { reason: 'invalid', message: /not the form/ }
  await t.rejects(found('{"model": "whisper-1"}'), noForm)
  await t.rejects(found(`--${boundary}\r\n${'x'.repeat(20_000)}`), noForm)
  await t.rejects(found('x', 'multipart/form-data'), { reason: 'invalid', message: /boundary/ })
})

t.test(
  'too-large: the model is not named in the first 25 MiB, which are all that waits',
  async t => {
    const recording = { name: 'file', value: Buffer.alloc(27 * 1024 * 1024) }
    const model = { name: 'model', value: 'whisper-1' }
    const source = (parts: Part[]) => inPieces(formOf(parts), [1_000_000])
    const { taken, pieces } = source([recording, model])
    const tooLarge = { reason: 'too-large', message: /first 25 MiB/, hint: /before the file/ }
    await t.rejects(readMultipartForm(pieces, type), tooLarge)
    t.ok(taken.pieces < 29)
    const form = await readMultipartForm(source([model, recording]).pieces, type)
    t.ok(
      (await joined(form.bytes())).equals(formOf([model, recording])),
      'after it there is no limit',
    )
  },
)

t.test('a form that may do without a model passes as it is, whatever its length', async t => {
  for (const size of [10, 27 * 1024 * 1024]) {
    const bytes = formOf([{ name: 'image', filename: 'a.png', value: Buffer.alloc(size, 7) }])
    const form = await readMultipartForm(inPieces(bytes, [1_000_000]).pieces, type, {
      isOptional: true,
      byteLength: size,
    })
    t.equal(form.model, undefined)
    t.ok((await joined(form.bytes('renamed'))).equals(bytes))
    t.equal(form.byteLength('renamed'), size)
  }
})

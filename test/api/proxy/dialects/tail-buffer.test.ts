import fc from 'fast-check'
import t from 'tap'
import { dialects } from '#api/proxy/dialects/index.ts'
import { TailBuffer } from '#api/proxy/dialects/reply.ts'

t.test('the tail of any bytes in any pieces is their end, and at least as long as asked', t => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 50 }), (pieces, size) => {
      const tail = new TailBuffer(size)
      for (const piece of pieces) tail.push(piece)
      const all = Buffer.concat(pieces)
      const { bytes, isComplete } = tail
      return (
        Buffer.from(bytes).equals(all.subarray(all.length - bytes.length)) &&
        bytes.length >= Math.min(size, all.length) &&
        bytes.length <= 2 * size &&
        isComplete === (bytes.length === all.length)
      )
    }),
  )
  t.pass('for every one of them')
  t.end()
})

const event = (body: object): string => `data: ${JSON.stringify(body)}\n\n`
const words = event({ choices: [{ index: 0, delta: { content: 'word 猫 '.repeat(1_000) } }] })
const usage = event({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 99 } })
const stop = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })

/** Hears a stream in pieces of so many bytes. */
function heard(text: string, size: number) {
  const bytes = Buffer.from(text)
  const listener = dialects.openai.createReplyParser({
    status: 200,
    contentType: 'text/event-stream',
  })
  for (let start = 0; start < bytes.length; start += size) {
    listener.feed(bytes.subarray(start, start + size))
  }
  return listener.end()
}

t.test('of a stream longer than what is kept, the end is heard all the same', async t => {
  for (const size of [1_000, 65_536, 10_000_000]) {
    const long = words.repeat(500)
    const whole = heard(`${long}${stop}${usage}data: [DONE]\n\n`, size)
    t.equal(whole.text.length, 2 * 1024 * 1024, `in pieces of ${size}`)
    t.match(whole, { truncated: true, complete: true, failed: false })
    t.match(whole, { inputTokens: 7, outputTokens: 99 })
    t.match(heard(long, size), { truncated: true, complete: false, failed: false })
    const error = event({ error: { message: 'overloaded' } })
    t.match(heard(long + error, size), { failed: true, text: '' })
  }
})

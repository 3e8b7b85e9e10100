import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import fc from 'fast-check'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { Reply } from '#api/proxy/dialects/dialect.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { goldenAnswers, type GoldenAnswer } from '#test/support/samples/golden/index.ts'
import { anyText } from '#test/support/samples/any-text.ts'

type Answer = { status: number; contentType: string }

const ok: Answer = { status: 200, contentType: 'text/event-stream' }

function heard(family: ApiFormat, chunks: readonly Uint8Array[], answer: Answer = ok): Reply {
  const listener = dialects[family].createReplyParser(answer)
  for (const chunk of chunks) listener.feed(chunk)
  return listener.end()
}

const replyTo = ({ family, contentType }: GoldenAnswer, chunks: readonly Uint8Array[]): Reply =>
  heard(family, chunks, { status: 200, contentType })

/** Cut at the given places, whatever their order. */
function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const rising = [0, ...places.toSorted((one, other) => one - other), bytes.length]
  return rising.slice(1).map((end, index) => bytes.subarray(rising[index], end))
}

const sse = (...events: unknown[]): Buffer =>
  Buffer.from(events.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''))

const says = (content: string): unknown => ({ choices: [{ index: 0, delta: { content } }] })

for (const golden of goldenAnswers) {
  t.test(`${golden.name} is heard, however its bytes are split`, async t => {
    const { bytes, reply } = golden
    const whole = replyTo(golden, [bytes])
    t.same(whole, reply, 'in one piece')
    t.same(
      replyTo(
        golden,
        Array.from(bytes, byte => Uint8Array.of(byte)),
      ),
      reply,
      'byte by byte',
    )
    for (let place = 1; place < bytes.length; place += 1 + Math.floor(bytes.length / 500)) {
      const split = replyTo(golden, cutAt(bytes, [place]))
      if (split.text !== reply.text) t.same(split, reply, `in two pieces at ${place}`)
    }
    const places = fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 })
    const holds = fc.property(places, at =>
      isDeepStrictEqual(replyTo(golden, cutAt(bytes, at)), whole),
    )
    fc.assert(holds, { numRuns: 20 })
  })

  t.test(`${golden.name} is heard without its content type, and untouched`, async t => {
    const { family, bytes, reply } = golden
    const before = Buffer.from(bytes)
    t.same(heard(family, [bytes], { status: 200, contentType: '' }), reply)
    t.ok(before.equals(bytes))
  })
}

t.test('an answer with an error status fails, whatever it holds', async t => {
  for (const { family, bytes, contentType } of goldenAnswers) {
    for (const status of [301, 400, 429, 529]) {
      const failed = { text: '', truncated: false, complete: false, failed: true }
      t.same(heard(family, [bytes], { status, contentType }), failed)
    }
  }
})

t.test('an answer that never came is neither complete nor failed', async t => {
  for (const contentType of ['text/event-stream', 'application/json', '']) {
    const nothing = { text: '', truncated: false, complete: false, failed: false }
    t.same(heard('openai', [], { status: 200, contentType }), nothing)
    t.same(heard('openai', [Buffer.from(' \n')], { status: 200, contentType }), nothing)
  }
})

t.test('of an endless answer two mebibytes are kept, and its end is still heard', async t => {
  const endless = Array.from({ length: 100 }, () => says('é猫'.repeat(32 * 1024)))
  const stop = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 99 } }
  const bytes = sse(...endless, stop, usage)
  for (const size of [1_000, 65_536, bytes.length]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    const { text, ...rest } = heard('openai', pieces)
    t.equal(text, 'é猫'.repeat(1024 * 1024), `in pieces of ${size}`)
    const tokens = { inputTokens: 7, outputTokens: 99 }
    t.same(rest, { truncated: true, complete: true, failed: false, ...tokens })
  }
  const error = { error: { message: 'overloaded' } }
  t.match(heard('openai', [sse(...endless)]), { truncated: true, complete: false, failed: false })
  t.match(heard('openai', [sse(...endless, error)]), { failed: true, text: '' })
})

t.test('a great many small words take no more memory than the text', async t => {
  const listener = dialects.openai.createReplyParser(ok)
  const chunk = sse(...Array.from({ length: 512 }, () => says('some more words ')))
  for (let count = 0; count < 200; count++) listener.feed(chunk)
  t.equal(listener.end().text, 'some more words '.repeat(512 * 200))
})

t.test('an event too long to hold is passed over, the next is heard', async t => {
  const picture = sse({
    candidates: [{ content: { parts: [{ inlineData: { data: 'A'.repeat(5e6) } }] } }],
  })
  const text = sse({
    candidates: [{ content: { parts: [{ text: 'a cat' }] }, finishReason: 'STOP' }],
  })
  const pieces: Uint8Array[] = []
  for (let at = 0; at < picture.length; at += 65_536) pieces.push(picture.subarray(at, at + 65_536))
  const reply = heard('google', [...pieces, text])
  t.same(reply, { text: 'a cat', truncated: true, complete: true, failed: false })
})

t.test('a picture in a whole answer goes by, however large', async t => {
  const head = '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"'
  const tail = '"}},{"text":"a cat"}]},"finishReason":"STOP"}]}'
  const listener = dialects.google.createReplyParser({
    status: 200,
    contentType: 'application/json',
  })
  listener.feed(Buffer.from(head))
  const piece = Buffer.alloc(1024 * 1024, 'A')
  for (let count = 0; count < 40; count++) listener.feed(piece)
  listener.feed(Buffer.from(tail))
  t.same(listener.end(), {
    text: '[file]\na cat',
    truncated: false,
    complete: true,
    failed: false,
  })
})

t.test('a whole answer that is too long is kept up to the bound, in whole characters', async t => {
  const content = '\u{1F431}"\\é'.repeat(400_000)
  const body = Buffer.from(
    JSON.stringify({ choices: [{ message: { content }, finish_reason: 'stop' }] }),
  )
  const { text, ...rest } = heard('openai', [body], {
    status: 200,
    contentType: 'application/json',
  })
  t.same(rest, { truncated: true, complete: true, failed: false })
  t.ok(content.startsWith(text))
  t.ok(Buffer.byteLength(JSON.stringify(text)) > 2 * 1024 * 1024 - 16)
})

t.test('NUL and lone surrogates do not reach the stores', async t => {
  const reply = heard('openai', [
    Buffer.from(String.raw`data: {"choices":[{"delta":{"content":"a\u0000b\ud800c"}}]}` + '\n\n'),
  ])
  t.equal(reply.text, 'a\uFFFDb\uFFFDc')
})

t.test('counts of tokens that no bill can hold are none', async t => {
  const max = 2 ** 31 - 1
  const countsOf = (family: ApiFormat, body: object) => {
    const answer = { status: 200, contentType: 'application/json' }
    const { inputTokens, outputTokens } = heard(family, [Buffer.from(JSON.stringify(body))], answer)
    return [inputTokens, outputTokens]
  }
  const openai = (prompt_tokens: number, completion_tokens: number) =>
    countsOf('openai', { choices: [], usage: { prompt_tokens, completion_tokens } })
  t.same(openai(max, max), [max, max])
  t.same(openai(max + 1, 5), [undefined, 5])
  t.same(openai(5, 2 ** 32 - 1), [5, undefined])
  const usage = { input_tokens: max, cache_read_input_tokens: 1, output_tokens: 5 }
  t.same(countsOf('anthropic', { type: 'message', content: [], usage }), [undefined, 5])
})

t.test('input from a cache is counted, by the names of each family', async t => {
  const cachedOf = (family: ApiFormat, body: object) =>
    heard(family, [Buffer.from(JSON.stringify(body))], {
      status: 200,
      contentType: 'application/json',
    }).cachedTokens
  const usage = { prompt_tokens: 9, prompt_cache_hit_tokens: 4 }
  t.equal(cachedOf('openai', { choices: [], usage }), 4, 'DeepSeek')
  const usageMetadata = { promptTokenCount: 9, cachedContentTokenCount: 5 }
  t.equal(cachedOf('google', { candidates: [], usageMetadata }), 5)
})

t.test('nothing a provider sends makes a listener throw', async t => {
  const field = fc.constantFrom(
    ...'choices delta message content type text error usage candidates'.split(' '),
    ...'parts finish_reason stop_reason index content_block usageMetadata'.split(' '),
    ...'prompt_tokens __proto__ toString audio promptFeedback x_groq'.split(' '),
  )
  const scalar = fc.oneof(
    fc.constantFrom(
      'message',
      'content_block_start',
      'constructor',
      '__proto__',
      'text',
      -1,
      1e300,
    ),
    fc.constantFrom(null, true, 0, ''),
    anyText(),
  )
  const { value } = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 7, depthIdentifier: 'said' },
      scalar,
      fc.array(tie('value'), { maxLength: 3, depthIdentifier: 'said' }),
      fc.dictionary(field, tie('value'), { maxKeys: 5, depthIdentifier: 'said' }),
    ),
  }))
  const bytes = fc.oneof(
    value.map(one => Buffer.from(`data: ${JSON.stringify(one)}\n\n`)),
    value.map(one => Buffer.from(JSON.stringify(one))),
    value.map(one => Buffer.from(JSON.stringify([one, one]).slice(0, -2))),
    fc.uint8Array({ maxLength: 200 }),
  )
  const contentType = fc.constantFrom('text/event-stream', 'application/json', '')
  const family = fc.constantFrom<ApiFormat>('openai', 'anthropic', 'google')
  const isHeard = fc.property(
    family,
    contentType,
    fc.array(bytes, { maxLength: 4 }),
    (name, type, all) => {
      const { text } = heard(name, all, { status: 200, contentType: type })
      return typeof text === 'string' && text.isWellFormed()
    },
  )
  fc.assert(isHeard, { numRuns: 500 })
  t.pass('none did')
})

t.test('Responses whose text stands only where a part or an item ends', async t => {
  const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] })
  const added = { type: 'response.output_item.added', item: { type: 'message' } }
  const partDone = (text: string) => ({ type: 'response.output_text.done', text })
  const itemDone = (text: string) => ({ type: 'response.output_item.done', item: message(text) })
  const delta = (text: string) => ({ type: 'response.output_text.delta', delta: text })
  const end = { type: 'response.completed', response: { status: 'completed', output: [] } }
  for (const events of [
    [partDone('One.'), itemDone('One.'), partDone('Two.'), itemDone('Two.')],
    [added, itemDone('One.'), added, itemDone('Two.')],
    [added, delta('One'), delta('.'), partDone('One.'), itemDone('One.'), added, partDone('Two.')],
  ]) {
    t.match(heard('responses', [sse(...events, end)]), { text: 'One.\nTwo.', complete: true })
  }
})

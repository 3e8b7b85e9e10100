import t from 'tap'
import fc from 'fast-check'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { Refusal } from '#shared/core/errors.ts'
import { anyText } from '#test/support/samples/any-text.ts'

const families: ApiFormat[] = ['openai', 'anthropic', 'google']

/** Does everything that can be done with a request; only a refusal may come out of it. */
function used(family: ApiFormat, body: Buffer): 'read' | 'refused' {
  try {
    const request = dialects[family].parseRequest(body)
    for (const { role, content } of [...request.turns, ...request.newMessages]) {
      if (!`${role}${content as string}`.isWellFormed()) throw new Error('not well formed')
    }
    const plain = request.serialize({})
    const full = request.serialize({ context: 'BLOCK', model: 'm' })
    const parse = (bytes: Buffer): unknown => JSON.parse(new TextDecoder().decode(bytes))
    if (body.length < 1e6) {
      parse(plain)
      parse(full)
    }
    if (full.includes('"BLOCK"') !== (request.userTurn !== undefined))
      throw new Error('block and promise differ')
    const again = dialects[family].parseRequest(plain)
    if (Object.keys(again.switches).length > 0) throw new Error('a switch was left')
    if (!again.serialize({}).equals(plain)) throw new Error('something was left to take out')
    return 'read'
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') return 'refused'
    throw error
  }
}

t.test('odd bodies are read, and what memory cannot read it leaves alone', async t => {
  const odd = [
    '{}',
    '{"messages":[],"contents":[]}',
    '{"messages":null,"contents":null,"model":null,"stream":"yes"}',
    '{"messages":{"role":"user","content":"x"},"contents":"x"}',
    '{"messages":[[[{"role":"user"}]],null,1,"x",{}],"contents":[[],{"parts":{"parts":[]}}]}',
    '{"__proto__":{"messages":[]},"constructor":1,"messages":[{"__proto__":{"role":"user"},"role":"user","content":[{"__proto__":1}]}]}',
    '{"contents":[{"parts":[{"__proto__":{"text":"x"}},{"hasOwnProperty":1},{"text":{"a":1}},{"text":null}]}]}',
    '{"messages":[{"role":"user","content":[{"type":["text"],"text":["x"]},{"type":{"toString":1}}]}]}',
    '{"":1,"messages":[{"":1,"role":"user","content":"\\u0000\\ud800"}]}',
    '\uFEFF{"messages":[{"role":"user","content":"marked"}]}',
  ]
  for (const family of families) {
    for (const body of odd) t.equal(used(family, Buffer.from(body)), 'read', body)
  }
})

t.test('bytes that are no UTF-8 go through as they came', async t => {
  const [before, after] = ['{"messages":[{"role":"user","content":"a', 'b"}]}']
  const body = Buffer.concat([
    Buffer.from(before),
    Buffer.of(0xff, 0xc3, 0xed, 0xa0),
    Buffer.from(after),
  ])
  const request = dialects.openai.parseRequest(body)
  t.ok(request.serialize({}).equals(body))
  t.match(request.newMessages, [{ content: /^a\uFFFD+b$/ }])
})

t.test('bodies made to be slow, deep or large are read or refused', async t => {
  const many = (text: string, times: number): string => text.repeat(times)
  const bodies = {
    'deep arrays': `{"messages":${many('[', 50_000)}${many(']', 50_000)}}`,
    'deep objects': many('{"messages":', 50_000),
    'a key of megabytes': `{"${many('k', 5e5)}":1,"messages":[{"${many('\\u006b', 1e5)}":1}]}`,
    'many members': `{${many('"a":1,', 5e4)}"memory":true}`,
    'many switches': `{${many('"memory":true,', 3e4)}"a":1}`,
    'many messages': `{"messages":[${many('{"role":"user","content":"x"},', 15e3)}{}]}`,
    'many messages with switches': `{"messages":[${many('{"memory":true},', 3e4)}{}]}`,
    'many lists of messages': `{${many('"messages":[{"role":"user","content":"x"}],', 1e4)}"contents":[]}`,
    'many parts': `{"messages":[{"role":"user","content":[${many('{"type":"tool_result"},', 2e4)}{"type":"text","text":"x"}]}]}`,
    'escapes only': `{"messages":[{"role":"user","content":"${many('\\\\\\"', 3e5)}"}]}`,
    'blanks only': `{${many(' ', 1e6)}}`,
    'an open string': `{"messages":"${many('\\"', 5e5)}`,
    'a long number': `{"messages":[${many('9', 1e6)}]}`,
    'an endless picture': `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"${many('A', 1e6)}"}}]}]}`,
  }
  const refused = new Set(['deep arrays', 'deep objects', 'an open string'])
  for (const [name, text] of Object.entries(bodies)) {
    const body = Buffer.from(text)
    for (const family of families) {
      t.equal(used(family, body), refused.has(name) ? 'refused' : 'read', `${family}: ${name}`)
    }
  }
})

t.test('of an endless conversation the newest ten thousand messages are read', async t => {
  const messages = Array.from({ length: 12_000 }, (_, index) => ({
    role: 'user',
    content: `${index}`,
  }))
  const { turns, newMessages } = dialects.openai.parseRequest(
    Buffer.from(JSON.stringify({ messages })),
  )
  for (const read of [turns, newMessages]) {
    t.equal(read.length, 10_000)
    t.match(read[0], { content: '2000' })
    t.match(read.at(-1), { content: '11999' })
  }
})

t.test('whatever a body says, it is read or refused', async t => {
  const name = fc.constantFrom(
    ...'messages contents role content parts memory name type text'.split(' '),
    ...'model stream system systemInstruction session_id memory_mode embeddings'.split(' '),
    ...'cache_control functionResponse thought __proto__ toString'.split(' '),
  )
  const scalar = fc.oneof(
    fc.constantFrom(
      'user',
      'assistant',
      'model',
      'tool',
      'tool_result',
      'text',
      'off',
      '',
      true,
      false,
    ),
    fc.constantFrom(null, 0, -1.5, '<memory_context>', '\u0000', '\ud800'),
    anyText({ maxLength: 10 }),
  )
  const { value } = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 6, depthIdentifier: 'body' },
      scalar,
      fc.array(tie('value'), { maxLength: 4, depthIdentifier: 'body' }),
      fc.dictionary(name, tie('value'), { maxKeys: 5, depthIdentifier: 'body' }),
    ),
  }))
  const message = fc.dictionary(name, value, { maxKeys: 4 })
  const body = fc.record(
    {
      messages: fc.array(message),
      contents: fc.array(message),
      model: value,
      system: value,
      rest: value,
    },
    { requiredKeys: [] },
  )
  const counted = { read: 0, refused: 0 }
  const holds = fc.property(fc.constantFrom(...families), body, fc.nat(), (family, body, at) => {
    const bytes = Buffer.from(JSON.stringify(body))
    counted[used(family, bytes)]++
    bytes[at % bytes.length] = at % 256
    counted[used(family, bytes)]++
  })
  fc.assert(holds, { numRuns: 2_000 })
  t.ok(counted.read > 500 && counted.refused > 500, JSON.stringify(counted))
})

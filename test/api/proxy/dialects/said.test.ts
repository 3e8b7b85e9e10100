import t from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'
import type { Message } from '#shared/domain/message-content.ts'

const read = (family: ApiFormat, body: object) =>
  dialects[family].parseRequest(Buffer.from(JSON.stringify(body)))

const said = (family: ApiFormat, messages: unknown): Message[] =>
  read(family, { messages, contents: messages }).newMessages

const user = (content: unknown, more: object = {}) => ({ role: 'user', content, ...more })
const model = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more })
const tool = { role: 'tool', tool_call_id: 'c', content: 'secret result' }
const block = renderContextBlock(
  [{ id: 'a', tier: 1, role: 'user', text: 'my cat is called Ada', at: 0, tokens: 6 }],
  1_000,
)!

t.test('openai: the turns of the user since the model spoke', async t => {
  const cases: [messages: unknown, texts: string[]][] = [
    [
      [user('old'), model('yes'), user('one'), user('two')],
      ['one', 'two'],
    ],
    [[{ role: 'system', content: 's' }, user('one'), { role: 'developer', content: 's' }], ['one']],
    [[user('one'), model(null, { tool_calls: [] }), tool], []],
    [[user('one'), model(null), tool, user('two')], ['two']],
    [[user('one'), { role: 'function', content: 'r' }], []],
    [[user('one'), model('a beginning of')], ['one']],
    [[user('one'), model('a'), user('two'), model('b'), model('c')], ['two']],
    [[user('hidden', { memory: false }), user('one', { memory: true })], ['one']],
    [[user('hidden', { memory: false })], []],
    [
      [
        user([
          { type: 'image_url', image_url: {} },
          { type: 'text', text: 'what?' },
        ]),
      ],
      ['[image]\nwhat?'],
    ],
    [[user(`${block}\n\nAnd now?`)], ['And now?']],
    [[user(block)], []],
    [[user(''), user(null), user([]), user(7), user({}), user(' \n')], []],
    [[], []],
    ['hi', []],
    [null, []],
    [[null, 1, 'x', [user('x')], {}, { role: 5, content: 'x' }], []],
  ]
  for (const [messages, texts] of cases) {
    const expected = texts.map(content => ({ role: 'user', content }))
    t.strictSame(said('openai', messages), expected, JSON.stringify(texts))
  }
})

t.test('openai: who speaks is kept, where the name can be', async t => {
  t.strictSame(said('openai', [user('hi', { name: 'Maya' })]), [
    { role: 'user', content: 'hi', name: 'Maya' },
  ])
  for (const name of ['', 'a\nb', 'x'.repeat(257), 7, null, {}]) {
    t.strictSame(said('openai', [user('hi', { name })]), [{ role: 'user', content: 'hi' }])
  }
})

t.test('anthropic: results of tools are nobody’s words', async t => {
  const result = {
    type: 'tool_result',
    tool_use_id: 't',
    content: [{ type: 'text', text: 'secret' }],
  }
  const words = { type: 'text', text: 'and mine' }
  t.strictSame(said('anthropic', [user('a'), model([{ type: 'tool_use' }]), user([result])]), [])
  t.strictSame(said('anthropic', [user('a'), model('b'), user([result, words])]), [
    { role: 'user', content: 'and mine' },
  ])
  const picture = { type: 'image', source: { type: 'base64', data: 'AAAA' } }
  t.strictSame(said('anthropic', [user([picture, { type: 'document', source: {} }])]), [
    { role: 'user', content: '[image]\n[file]' },
  ])
})

t.test('google: contents and parts, with the answers of functions left out', async t => {
  const ask = { parts: [{ text: 'what is' }, { inlineData: { data: 'AAAA' } }] }
  const answer = { role: 'function', parts: [{ functionResponse: { response: { text: 'r' } } }] }
  const call = { role: 'model', parts: [{ functionCall: {} }] }
  t.strictSame(said('google', [ask]), [{ role: 'user', content: 'what is\n[file]' }])
  t.strictSame(said('google', { role: 'user', parts: { text: 'alone' } }), [
    { role: 'user', content: 'alone' },
  ])
  t.strictSame(said('google', [ask, call, answer]), [])
  t.strictSame(said('google', [ask, call, { ...answer, role: 'user' }]), [])
  const thought = { role: 'user', parts: [{ text: 'hmm', thought: true }, { text: 'aloud' }] }
  t.strictSame(said('google', [thought]), [{ role: 'user', content: 'aloud' }])
})

t.test('the turns hold the system prompt, wherever a family keeps it', async t => {
  const system = { role: 'system', content: 'Be kind.' }
  const ask = { role: 'user', content: 'hi' }
  t.strictSame(read('openai', { messages: [system, ask] }).turns, [system, ask])
  t.strictSame(read('anthropic', { system: 'Be kind.', messages: [ask] }).turns, [system, ask])
  t.strictSame(
    read('anthropic', { messages: [ask], system: [{ type: 'text', text: 'Be kind.' }] }).turns,
    [system, ask],
  )
  const contents = [{ parts: [{ text: 'hi' }] }]
  for (const name of ['systemInstruction', 'system_instruction']) {
    for (const parts of [[{ text: 'Be kind.' }], { text: 'Be kind.' }]) {
      t.strictSame(read('google', { [name]: { parts }, contents }).turns, [system, ask])
    }
  }
  t.strictSame(read('anthropic', { system: null, messages: [] }).turns, [])
})

t.test('what is read can be stored: no NUL, no lone surrogates', async t => {
  const body = String.raw`{"messages":[{"role":"user","content":"a\u0000b\ud800c","name":"\udc00"}]}`
  const request = dialects.openai.parseRequest(Buffer.from(body))
  t.strictSame(request.newMessages, [{ role: 'user', content: 'a\uFFFDb\uFFFDc', name: '\uFFFD' }])
  t.equal(request.serialize({}).toString(), body)
})

t.test('the model is read where the body names it', async t => {
  t.equal(read('openai', { model: 'm' }).model, 'm')
  t.equal(read('anthropic', { model: 'm' }).model, 'm')
  t.equal(read('google', { model: 'm' }).model, undefined)
  for (const model of [null, 7, ['m'], { a: 'm' }]) {
    t.equal(read('openai', { model }).model, undefined)
    const body = Buffer.from(JSON.stringify({ model }))
    t.equal(
      dialects.openai.parseRequest(body).serialize({ model: 'x' }).toString(),
      body.toString(),
    )
  }
  const twice = dialects.openai.parseRequest(
    Buffer.from('{"model":"a","stream":true,"model":"b","stream":0}'),
  )
  t.equal(twice.model, 'b')
  t.equal(
    twice.serialize({ model: 'c' }).toString(),
    '{"model":"a","stream":true,"model":"c","stream":0}',
  )
})

import t from 'tap'
import type { UserTurn } from '#api/proxy/dialects/dialect.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { conversationFields } from '#test/api/proxy/dialects/conversations.ts'

const turnOf = (family: ApiFormat, body: unknown): UserTurn | undefined =>
  dialects[family].parseRequest(Buffer.from(JSON.stringify(body))).userTurn

const print = (family: ApiFormat, body: unknown): string | undefined =>
  turnOf(family, body)?.fingerprint.toString('hex')

const mark = { cache_control: { type: 'ephemeral' } }
const text = (words: string, more: object = {}) => ({ type: 'text', text: words, ...more })

/** After a question: what makes a call one that goes on with it, and what does not. */
const goingOn: Record<ApiFormat, [after: unknown[], goesOn: boolean][]> = {
  openai: [
    [[], false],
    [
      [
        { role: 'assistant', tool_calls: [{ id: 'a' }] },
        { role: 'tool', content: 'r' },
      ],
      true,
    ],
    [[{ role: 'assistant', content: 'The answer is' }], false],
    [[{ role: 'system', content: 'Be brief.' }], false],
  ],
  anthropic: [
    [[], false],
    [
      [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a' }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
      ],
      true,
    ],
    [[{ role: 'assistant', content: '{' }], false],
    [[{ role: 'assistant', content: [text('{')] }], false],
    // An answer that was paused in the middle of the provider's own tools is sent back as it is.
    [[{ role: 'assistant', content: [text('Hm'), { type: 'server_tool_use', id: 'a' }] }], true],
  ],
  google: [
    [[], false],
    [
      [
        { role: 'model', parts: [{ functionCall: {} }] },
        { role: 'function', parts: [{ functionResponse: {} }] },
      ],
      true,
    ],
    [[{ role: 'model', parts: [{ text: '{' }] }], false],
  ],
  responses: [
    [[], false],
    [
      [
        { type: 'reasoning', encrypted_content: 'x', summary: [] },
        { type: 'custom_tool_call', call_id: 'a', name: 'exec', input: 'ls' },
        { type: 'custom_tool_call_output', call_id: 'a', output: [{ type: 'input_text' }] },
      ],
      true,
    ],
    [[{ type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm' }] }], true],
    [[{ role: 'assistant', content: 'The answer is' }], false],
    [[{ role: 'developer', content: 'Be brief.' }], false],
    [[{ type: 'additional_tools', role: 'developer', tools: [] }], false],
  ],
}

function asking(family: ApiFormat, after: unknown[]): unknown {
  if (family === 'google')
    return { contents: [{ role: 'user', parts: [{ text: 'Why?' }] }, ...after] }
  return { [conversationFields[family]]: [{ role: 'user', content: 'Why?' }, ...after] }
}

for (const family of Object.keys(goingOn) as ApiFormat[]) {
  t.test(`${family}: a call goes on with a turn when it brings what tools have found`, async t => {
    const first = print(family, asking(family, []))
    for (const [after, goesOn] of goingOn[family]) {
      const turn = turnOf(family, asking(family, after))!
      t.equal(turn.isToolContinuation, goesOn, JSON.stringify(after))
      t.equal(turn.fingerprint.toString('hex'), first, 'and it is the same turn')
    }
  })
}

t.test('no turn without words of the user', async t => {
  t.equal(turnOf('openai', { messages: [{ role: 'system', content: 'a' }] }), undefined)
  t.equal(turnOf('anthropic', { messages: [{ role: 'user', content: '' }] }), undefined)
  t.equal(turnOf('google', {}), undefined)
})

t.test('the print is of what was said, however a client marks it for caching', async t => {
  const asked = (content: unknown, system: unknown = 'It is noon.') =>
    print('anthropic', {
      system,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content },
      ],
    })
  const plain = asked('Why "so"?')
  t.equal(asked([text('Why "so"?')]), plain)
  t.equal(asked([text('Why "so"?', mark)]), plain)
  t.equal(asked('Why "so"?', [text('It is one o’clock.', mark)]), plain)
  t.not(asked('Why so?'), plain)
  t.not(asked([text('Why'), text('"so"?')]), plain)
  const picture = (data: string) => asked([{ type: 'image', source: { data } }, text('Why?')])
  t.equal(picture('A'), picture('A'))
  t.not(picture('A'), picture('B'))
})

t.test('the print is of the conversation, too, and of who said what', async t => {
  const prints = [
    [{ role: 'user', content: 'a' }],
    [{ role: 'user', content: 'b' }],
    [
      { role: 'user', content: 'a' },
      { role: 'user', content: 'a' },
    ],
    [
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'a' },
    ],
    [
      { role: 'tool', content: 'a' },
      { role: 'user', content: 'a' },
    ],
    [{ role: 'user', content: ['a'] }],
    [{ role: 'user', content: null }],
    [{ role: 'user' }],
  ].map(messages => print('openai', { messages }))
  t.equal(new Set(prints).size, prints.length - 1, 'a text is a list of one')
  const system = { role: 'system', content: 'It is noon.' }
  t.equal(print('openai', { messages: [system, { role: 'user', content: 'a' }] }), prints[0])
})

t.test('a block stays in its place when the marks move on', async t => {
  const body = (first: object, second: object) => ({
    messages: [{ role: 'user', content: [text('One', first), text('Two', second)] }],
  })
  const read = (first: object, second: object) =>
    dialects.anthropic.parseRequest(Buffer.from(JSON.stringify(body(first, second))))
  const places = (context: string, blockIndex: number | undefined, ...marks: [object, object]) => {
    const written = read(...marks).serialize({ context, blockIndex })
    const { messages } = JSON.parse(written.toString()) as ReturnType<typeof body>
    return messages[0]!.content.map(({ text }) => text)
  }
  t.equal(read({}, {}).userTurn?.blockIndex, 0)
  t.equal(read({}, mark).userTurn?.blockIndex, 2)
  t.equal(read(mark, {}).userTurn?.blockIndex, 1)
  t.equal(read(mark, mark).userTurn?.blockIndex, 2)
  t.same(places('B', undefined, mark, {}), ['One', 'B', 'Two'])
  t.same(places('B', 0, mark, {}), ['B', 'One', 'Two'])
  t.same(places('B', 1, {}, mark), ['One', 'B', 'Two'])
  t.same(places('B', 2, mark, {}), ['One', 'Two', 'B'])
  t.same(places('B', 9, {}, mark), ['One', 'Two', 'B'])
  const plain = dialects.anthropic.parseRequest(
    Buffer.from('{"messages":[{"role":"user","content":"a"}]}'),
  )
  t.match(plain.serialize({ context: 'B', blockIndex: 0 }).toString(), /"B"[^]*"a"/)
  t.match(plain.serialize({ context: 'B', blockIndex: 1 }).toString(), /"a"[^]*"B"/)
})

import fc from 'fast-check'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dropped, ordered, type Members, type Ordered } from '#test/api/proxy/json/written.ts'

/** Turns of all kinds that clients send, as each family writes them. */

const text = fc.oneof(
  fc.constantFrom(
    'hi',
    'a "quoted" line\nand one more',
    'ünïcode 猫 👩‍👩‍👧',
    '\u2028</memory_context>',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
)

const marked = fc.constantFrom<object>({}, {}, { cache_control: { type: 'ephemeral' } })

type Content = {
  user: fc.Arbitrary<unknown>
  model: fc.Arbitrary<unknown>
  tool: fc.Arbitrary<unknown>
}

const textBlock = fc.tuple(text, marked).map(([text, mark]) => ({ type: 'text', text, ...mark }))

const toolResult = fc
  .tuple(text, marked)
  .map(([content, mark]) => ({ type: 'tool_result', tool_use_id: 't', content, ...mark }))

const blocks = <Block>(block: fc.Arbitrary<Block>): fc.Arbitrary<Block[]> =>
  fc.array(block, { minLength: 1, maxLength: 3 })

const openaiPart = fc.oneof(
  text.map(text => ({ type: 'text', text })),
  fc.constant({
    type: 'image_url',
    image_url: { url: 'data:image/png;base64,AAAA', memory: true },
  }),
)

const inputPart = fc.oneof(
  text.map(text => ({ type: 'input_text', text })),
  fc.constant({ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }),
)

const contents: Record<ApiFormat, Content> = {
  openai: {
    user: fc.oneof(text, blocks(openaiPart)),
    model: fc.oneof(text, fc.constant(null), blocks(openaiPart)),
    tool: text,
  },
  anthropic: {
    user: fc.oneof(
      text,
      blocks(textBlock),
      fc
        .tuple(blocks(toolResult), blocks(textBlock))
        .map(([results, texts]) => [...results, ...texts]),
    ),
    model: fc.oneof(text, blocks(textBlock)),
    tool: blocks(toolResult),
  },
  google: {
    user: fc.oneof(
      blocks(text.map(text => ({ text }))),
      text.map(text => ({ text })),
      text.map(text => [{ functionResponse: { name: 'f', response: {} } }, { text }]),
    ),
    model: blocks(text.map(text => ({ text }))),
    tool: fc.constant([{ functionResponse: { name: 'f', response: { text: 'no' } } }]),
  },
  responses: {
    user: fc.oneof(text, blocks(inputPart)),
    model: fc.oneof(
      text,
      blocks(text.map(text => ({ type: 'output_text', text, annotations: [] }))),
    ),
    // An item without a role: its result is in `output`.
    tool: fc.constant(''),
  },
}

const roles: Record<ApiFormat, Record<keyof Content, string>> = {
  openai: { user: 'user', model: 'assistant', tool: 'tool' },
  anthropic: { user: 'user', model: 'assistant', tool: 'user' },
  google: { user: 'user', model: 'model', tool: 'user' },
  responses: { user: 'user', model: 'assistant', tool: 'tool' },
}

export const conversationFields: Record<ApiFormat, string> = {
  openai: 'messages',
  anthropic: 'messages',
  google: 'contents',
  responses: 'input',
}

/** Who a message is from, and what it says. */
function spoken(family: ApiFormat, speaker: keyof Content, content: unknown): Members[number][] {
  if (family === 'responses' && speaker === 'tool') {
    return [
      ['type', 'custom_tool_call_output'],
      ['output', [{ type: 'input_text', text: 'secret' }]],
    ]
  }
  return [
    ['role', roles[family][speaker]],
    [family === 'google' ? 'parts' : 'content', content],
  ]
}

/** One turn of a conversation: who speaks, and the message with the switch it may carry. */
type Turn = {
  speaker: keyof Content
  role: string
  content: unknown
  memory: boolean | undefined
  message: Ordered
}

function turn(family: ApiFormat, speaker: keyof Content): fc.Arbitrary<Turn> {
  const memory = fc.constantFrom(undefined, undefined, true, false)
  const place = fc.nat({ max: 3 })
  return fc.tuple(contents[family][speaker], memory, place).map(([content, memory, place]) => {
    const members: Members[number][] = [
      ...spoken(family, speaker, content),
      ['x_custom', { memory: false, n: 1 }],
    ]
    if (memory !== undefined) members.splice(place, 0, ['memory', memory, dropped])
    return { speaker, role: roles[family][speaker], content, memory, message: ordered(...members) }
  })
}

const switches: Members = [
  ['memory', true, dropped],
  ['memory_mode', 'read', dropped],
  ['memory_store', null, dropped],
  ['memory_store_response', false, dropped],
  ['session_id', 'a/b', dropped],
  ['embeddings', 'local', dropped],
  ['memory_mode', 'write', dropped],
]

/** Everything around the conversation that a provider may be sent. */
const around: Record<ApiFormat, Members> = {
  openai: [
    ['tools', [{ type: 'function', function: { name: 'f', parameters: { memory: true } } }]],
    ['stream', true],
    ['temperature', 0.7],
    ['stream_options', { include_usage: true }],
    ['embeddings', ['not ours']],
  ],
  anthropic: [
    ['system', [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }]],
    ['tools', [{ name: 'f', input_schema: {}, cache_control: { type: 'ephemeral' } }]],
    ['max_tokens', 1024],
    ['metadata', { user_id: 'u', session_id: 'not ours' }],
  ],
  google: [
    ['systemInstruction', { parts: { text: 'Be kind.' } }],
    ['tools', [{ functionDeclarations: [] }]],
    ['generationConfig', { temperature: 1, memory: false }],
  ],
  responses: [
    ['instructions', 'Be kind.'],
    ['previous_response_id', 'resp_1'],
    ['tools', [{ type: 'function', name: 'f', parameters: { memory: true } }]],
    ['include', ['reasoning.encrypted_content']],
    ['store', false],
  ],
}

export type Conversation = { turns: Turn[]; body: Ordered }

/** Whole requests of a family: any turns in any order, switches anywhere. */
export function conversation(family: ApiFormat): fc.Arbitrary<Conversation> {
  const speaker = fc.constantFrom<keyof Content>('user', 'user', 'model', 'tool')
  const turns = fc.array(
    speaker.chain(one => turn(family, one)),
    { maxLength: 8 },
  )
  const others = fc.shuffledSubarray([...around[family], ...switches])
  return fc.tuple(turns, others, fc.nat({ max: 8 })).map(([turns, others, place]) => {
    const members: Members[number][] = [...others]
    members.splice(place, 0, [conversationFields[family], turns.map(({ message }) => message)])
    members.splice(0, 0, ['model', 'openai/gpt-4o'])
    return { turns, body: ordered(...members) }
  })
}

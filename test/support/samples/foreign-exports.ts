import { crc32, deflateRawSync } from 'node:zlib'

/** Exports of other products, as their programs write them: small, synthetic, with what is odd in real ones. */

const second = (iso: string): number => Date.parse(iso) / 1000

type Node = { id: string; parent: string | null; children: string[]; message: object | null }

const chatgptMessage = (
  id: string,
  role: string,
  parts: unknown[],
  rest: { time?: string; type?: string; metadata?: object; recipient?: string } = {},
): object => ({
  id,
  author: { role, name: null, metadata: {} },
  create_time: rest.time === undefined ? null : second(rest.time),
  update_time: null,
  content: { content_type: rest.type ?? 'text', parts },
  status: 'finished_successfully',
  end_turn: true,
  weight: 1,
  metadata: rest.metadata ?? {},
  recipient: rest.recipient ?? 'all',
})

const node = (id: string, parent: string | null, message: object | null): Node => ({
  id,
  parent,
  children: [],
  message,
})

/** One conversation with a regenerated answer, an image, a tool call and custom instructions. */
export function chatgptConversation(id = 'c-1', title = 'Kitten names'): object {
  const nodes = [
    node('root', null, null),
    node('sys', 'root', chatgptMessage('sys', 'system', [''])),
    node('me', 'sys', {
      ...chatgptMessage('me', 'user', [], { time: '2025-02-01T10:00:00Z' }),
      content: {
        content_type: 'user_editable_context',
        user_profile: 'About the user:\n```I am a baker in Graz```',
        user_instructions: 'Be brief',
      },
      metadata: { is_visually_hidden_from_conversation: true },
    }),
    node(
      'q1',
      'me',
      chatgptMessage(
        'q1',
        'user',
        [
          'What shall I call my kitten?',
          { content_type: 'image_asset_pointer', asset_pointer: 'x' },
        ],
        { time: '2025-02-01T10:00:01.5Z', type: 'multimodal_text' },
      ),
    ),
    node(
      'a0',
      'q1',
      chatgptMessage('a0', 'assistant', ['Felix'], { time: '2025-02-01T10:00:05Z' }),
    ),
    node(
      'tool',
      'q1',
      chatgptMessage('tool', 'assistant', ['search("names")'], { type: 'code', recipient: 'web' }),
    ),
    node('result', 'tool', chatgptMessage('result', 'tool', ['Ada, Grace'])),
    node(
      'a1',
      'result',
      chatgptMessage('a1', 'assistant', ['Ada \uE200cite\uE202turn0search1\uE201suits her'], {
        time: '2025-02-01T10:00:09Z',
        metadata: { model_slug: 'gpt-5' },
      }),
    ),
    node('q2', 'a1', chatgptMessage('q2', 'user', ['Then Ada it is'])),
  ]
  return {
    id,
    conversation_id: id,
    title,
    create_time: second('2025-02-01T10:00:00Z'),
    current_node: 'q2',
    mapping: Object.fromEntries(nodes.map(found => [found.id, found])),
  }
}

export const claudeConversation = (): object => ({
  uuid: 'cl-1',
  name: 'Boiler',
  created_at: '2025-03-01T08:00:00.000000Z',
  chat_messages: [
    {
      uuid: 'm1',
      sender: 'human',
      text: 'old text',
      content: [{ type: 'text', text: 'Ms Brandt serviced our boiler' }],
      created_at: '2025-03-01T08:00:00.123456Z',
      attachments: [{ file_name: 'bill.txt', extracted_content: 'bill' }],
      files: [],
    },
    {
      uuid: 'm2',
      sender: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'Noted.' },
        { type: 'tool_use', name: 'x', input: {} },
      ],
      created_at: '2025-03-01T08:00:05Z',
    },
    { uuid: 'm3', sender: 'human', text: 'An older message', created_at: '2025-03-01T08:01:00Z' },
  ],
})

export const geminiRecords = (): object[] => [
  {
    header: 'Gemini Apps',
    title: 'Prompted When does the ferry to Naxos leave?',
    time: '2025-04-01T09:00:00.500Z',
    products: ['Gemini Apps'],
    safeHtmlItem: [
      { html: '<p>It leaves at <b>nine</b> &amp; at five.</p><ul><li>Daily</li></ul>' },
    ],
  },
  { header: 'Gemini Apps', title: 'Gave feedback', time: '2025-04-01T08:00:00Z', products: [] },
  {
    header: 'YouTube',
    title: 'Watched a film',
    time: '2025-04-01T08:00:00Z',
    products: ['YouTube'],
  },
]

export const mem0Page = (): object => ({
  results: [
    {
      id: 'a',
      memory: 'Lives in Graz',
      hash: 'x',
      metadata: { topic: 'home', nested: { a: 1 } },
      categories: ['personal_details', 'places'],
      user_id: 'alex',
      created_at: '2025-01-05T01:30:36.275141-07:00',
      updated_at: null,
    },
  ],
  relations: [{ source: 'alex', relationship: 'lives_in', target: 'graz' }],
})

export const zepGraph = (): object => ({
  thread_id: 't-1',
  messages: [
    {
      uuid: '1',
      role: 'user',
      name: 'Mira',
      content: 'My bike was stolen',
      created_at: '2025-05-01T10:00:00Z',
    },
    {
      uuid: '2',
      role_type: 'assistant',
      role: 'Bot',
      content: 'Sorry!',
      created_at: '2025-05-01T10:00:01Z',
    },
    { uuid: '3', role: 'tool', content: '{}', created_at: '2025-05-01T10:00:02Z' },
  ],
  facts: [
    {
      uuid: 'e',
      name: 'OWNS',
      fact: 'Mira owned a red bike',
      valid_at: '2024-01-01T00:00:00Z',
      invalid_at: '2025-05-01T00:00:00Z',
      created_at: '2025-05-01T10:00:03Z',
    },
  ],
})

export const langgraphExport = (): object[] => [
  {
    namespace: ['memories', 'u-1'],
    key: 'k',
    value: { kind: 'Memory', content: { content: 'Prefers tea' } },
    created_at: '2025-06-01T00:00:00+00:00',
  },
  { prefix: 'settings', key: 's', value: { theme: 'dark' }, created_at: '2025-06-01T00:00:00Z' },
  ...[2, 1].map(count => ({
    config: { configurable: { thread_id: 'th' } },
    checkpoint: {
      ts: `2025-06-02T00:00:0${count}Z`,
      channel_values: {
        messages: [
          {
            lc: 1,
            type: 'constructor',
            id: ['langchain_core', 'messages', 'HumanMessage'],
            kwargs: { content: 'I sail', id: 'h1', type: 'human' },
          },
          { type: 'ai', content: [{ type: 'text', text: 'Nice' }], id: 'a1' },
          { type: 'tool', content: 'x', tool_call_id: 'y' },
        ].slice(0, count + 1),
      },
    },
  })),
]

export const lettaFile = (): object => ({
  agents: [
    {
      id: 'agent-0',
      name: 'sam',
      system: 'You are',
      block_ids: ['b1', 'b2'],
      messages: [
        {
          role: 'system',
          content: [{ type: 'text', text: 'You are' }],
          created_at: '2025-07-01T00:00:00Z',
        },
        {
          role: 'user',
          content: [{ type: 'text', text: '{"type":"user_message","message":"I row on the Mur"}' }],
          created_at: '2025-07-01T00:00:01Z',
        },
        {
          role: 'user',
          content: [{ type: 'text', text: '{"type":"heartbeat","reason":"x"}' }],
          created_at: '2025-07-01T00:00:02Z',
        },
        {
          role: 'assistant',
          content: [{ type: 'text', text: 'They row.' }],
          tool_calls: [
            { function: { name: 'send_message', arguments: '{"message":"Since when?"}' } },
          ],
          created_at: '2025-07-01T00:00:03Z',
        },
      ],
    },
  ],
  blocks: [
    { id: 'b1', label: 'human', value: 'Occupation: rower' },
    { id: 'b2', label: 'persona', value: 'I am Sam' },
  ],
  created_at: '2025-07-02T00:00:00Z',
})

/** A zip archive with these files; one whose name ends in `.bin` is stored, the others are deflated. */
export function zipOf(files: Readonly<Record<string, string | Buffer>>): Buffer {
  const [bodies, directory]: [Buffer[], Buffer[]] = [[], []]
  let at = 0
  for (const [name, content] of Object.entries(files)) {
    const bytes = Buffer.from(content as string)
    const isStored = name.endsWith('.bin')
    const data = isStored ? bytes : deflateRawSync(bytes)
    const head = Buffer.alloc(26)
    head.writeUInt16LE(20, 0)
    head.writeUInt16LE(isStored ? 0 : 8, 4)
    head.writeUInt32LE(crc32(bytes), 10)
    head.writeUInt32LE(data.length, 14)
    head.writeUInt32LE(bytes.length, 18)
    head.writeUInt16LE(Buffer.byteLength(name), 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(at, 10)
    bodies.push(Buffer.from('PK\x03\x04'), head, Buffer.from(name), data)
    directory.push(Buffer.from('PK\x01\x02\x14\0'), head, tail, Buffer.from(name))
    at += 30 + Buffer.byteLength(name) + data.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(Object.keys(files).length, 4)
  end.writeUInt16LE(Object.keys(files).length, 6)
  end.writeUInt32LE(list.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...bodies, list, Buffer.from('PK\x05\x06'), end])
}

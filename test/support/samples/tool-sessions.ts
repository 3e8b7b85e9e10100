/** Sessions of agents as each family writes them: a user who asks, tool steps, and an answer. */

type Unit = { text: string; isBlock: boolean }
type Json = Record<string, unknown>

export type Family = {
  path: string
  /** The request of a step: the turns before it with all their steps, and its own up to that step. */
  body(topics: readonly string[], turn: number, step: number, stepsBefore?: number): string
  /** What a provider reads, in order, without cache marks; a text is a list of one. */
  units(body: string): Unit[]
  /** Whether the bytes of a request begin with those of the one before. */
  isAppendOnly: boolean
  marksLastMessage: boolean
}

const question = (topic: string): string =>
  `Which number has the ${topic} of my sister? Look it up.`
const found = (turn: number, step: number): string => `Shelf ${turn}.${step} `.repeat(40)

/** What is said and done up to a step, in words of no family. */
type Act = { kind: 'ask' | 'call' | 'result' | 'answer'; text: string; id: string }

function acts(topics: readonly string[], turn: number, step: number, stepsBefore: number): Act[] {
  const list: Act[] = []
  for (let index = 0; index <= turn; index++) {
    list.push({ kind: 'ask', text: question(topics[index]!), id: '' })
    for (let done = 0; done < (index === turn ? step : stepsBefore); done++) {
      const id = `c${index}_${done}`
      list.push({ kind: 'call', text: 'Let me look.', id })
      list.push({ kind: 'result', text: found(index, done), id })
    }
    if (index < turn) list.push({ kind: 'answer', text: `It is in the book, ${index}.`, id: '' })
  }
  return list
}

const isBlock = (text: string): boolean => text.includes('<memory_context>')

/** One unit for each part of each message. */
function toUnits(messages: readonly Json[], contentField: 'content' | 'parts'): Unit[] {
  return messages.flatMap(message => {
    const { [contentField]: content, ...rest } = message
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    return (Array.isArray(parts) ? parts : [null]).map(part => {
      const { cache_control: _, ...unmarked } = (part ?? {}) as Json
      const text = JSON.stringify([rest, unmarked])
      return { text, isBlock: isBlock(text) }
    })
  })
}

const unitsOf =
  (field: string, contentField: 'content' | 'parts' = 'content') =>
  (body: string): Unit[] =>
    toUnits((JSON.parse(body) as Record<string, Json[]>)[field]!, contentField)

const system = 'You are a careful assistant. '.repeat(30)

const openaiMessage: Record<Act['kind'], (act: Act) => Json> = {
  ask: ({ text }) => ({ role: 'user', content: text }),
  call: ({ id, text }) => ({
    role: 'assistant',
    content: text,
    tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
  }),
  result: ({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }),
  answer: ({ text }) => ({ role: 'assistant', content: text }),
}

const anthropicMessage: Record<Act['kind'], (act: Act) => Json> = {
  ask: ({ text }) => ({ role: 'user', content: [{ type: 'text', text }] }),
  call: ({ id, text }) => ({
    role: 'assistant',
    content: [
      { type: 'text', text },
      { type: 'tool_use', id, name: 'look', input: {} },
    ],
  }),
  result: ({ id, text }) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: text }],
  }),
  answer: ({ text }) => ({ role: 'assistant', content: [{ type: 'text', text }] }),
}

const googleMessage: Record<Act['kind'], (act: Act) => Json> = {
  ask: ({ text }) => ({ role: 'user', parts: [{ text }] }),
  call: ({ id }) => ({ role: 'model', parts: [{ functionCall: { id, name: 'look', args: {} } }] }),
  result: ({ id, text }) => ({
    role: 'user',
    parts: [{ functionResponse: { id, name: 'look', response: { text } } }],
  }),
  answer: ({ text }) => ({ role: 'model', parts: [{ text }] }),
}

/** As Codex writes them: reasoning is encrypted, the tool takes free text, its output is a list. */
const responsesItems: Record<Act['kind'], (act: Act) => Json[]> = {
  ask: ({ text }) => [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }],
  call: ({ id, text }) => [
    { type: 'reasoning', summary: [], encrypted_content: `secret of ${id}` },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
    { type: 'custom_tool_call', call_id: id, name: 'exec', input: 'look' },
  ],
  result: ({ id, text }) => [
    { type: 'custom_tool_call_output', call_id: id, output: [{ type: 'input_text', text }] },
  ],
  answer: ({ text }) => [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
  ],
}

const mark = { cache_control: { type: 'ephemeral' } }

/** The last part of the last message carries the mark, as Claude Code moves it along. */
function marked(messages: Json[]): Json[] {
  const last = messages.at(-1)!
  const content = last.content as Json[]
  const parts = [...content.slice(0, -1), { ...content.at(-1), ...mark }]
  return [...messages.slice(0, -1), { ...last, content: parts }]
}

export const families: Record<string, Family> = {
  openai: {
    path: '/v1/chat/completions',
    body: (topics, turn, step, stepsBefore = 3) =>
      JSON.stringify({
        model: 'gpt-4o-mini',
        messages: [
          { role: 'system', content: system },
          ...acts(topics, turn, step, stepsBefore).map(act => openaiMessage[act.kind](act)),
        ],
      }),
    units: unitsOf('messages'),
    isAppendOnly: true,
    marksLastMessage: false,
  },
  anthropic: {
    path: '/v1/messages',
    body: (topics, turn, step, stepsBefore = 3) =>
      JSON.stringify({
        model: 'claude-sonnet-5',
        max_tokens: 100,
        system: [{ type: 'text', text: system, ...mark }],
        messages: marked(
          acts(topics, turn, step, stepsBefore).map(act => anthropicMessage[act.kind](act)),
        ),
      }),
    units: unitsOf('messages'),
    isAppendOnly: false,
    marksLastMessage: true,
  },
  google: {
    path: '/v1beta/models/gemini-2.5-flash:generateContent',
    body: (topics, turn, step, stepsBefore = 3) =>
      JSON.stringify({
        systemInstruction: { parts: [{ text: system }] },
        contents: acts(topics, turn, step, stepsBefore).map(act => googleMessage[act.kind](act)),
      }),
    units: unitsOf('contents', 'parts'),
    isAppendOnly: true,
    marksLastMessage: false,
  },
  responses: {
    path: '/v1/responses',
    body: (topics, turn, step, stepsBefore = 3) =>
      JSON.stringify({
        model: 'gpt-5-mini',
        instructions: system,
        input: [
          { type: 'additional_tools', role: 'developer', tools: [] },
          ...acts(topics, turn, step, stepsBefore).flatMap(act => responsesItems[act.kind](act)),
        ],
        store: false,
      }),
    units: unitsOf('input'),
    isAppendOnly: true,
    marksLastMessage: false,
  },
}

import t from 'tap'
import type { Family } from '#api/proxy/dialects/dialect.ts'
import { dialects } from '#api/proxy/dialects/index.ts'

/** What makes providers' prompt caches work: of a growing conversation the beginning stays the same. */

const rounds = 20

type Body = Record<string, unknown>
type Message = Record<string, unknown>

const mark = { cache_control: { type: 'ephemeral' } }

/** The request of each round, as a client sends it that keeps the whole conversation. */
const growing: Record<Family, (round: number) => Body> = {
  openai: round => ({
    model: 'gpt-4o',
    tools: [{ type: 'function', function: { name: 'weather', parameters: {} } }],
    messages: [
      { role: 'system', content: 'Be kind.' },
      ...exchanges(round, (text, speaker) =>
        speaker === 'tool'
          ? [
              { role: 'assistant', content: null, tool_calls: [{ id: text, type: 'function' }] },
              { role: 'tool', tool_call_id: text, content: text },
            ]
          : [{ role: speaker === 'user' ? 'user' : 'assistant', content: text }],
      ),
    ],
  }),
  anthropic: round => ({
    model: 'claude',
    max_tokens: 100,
    tools: [{ name: 'weather', input_schema: {}, ...mark }],
    system: [{ type: 'text', text: 'Be kind.', ...mark }],
    messages: marked(
      exchanges(round, (text, speaker) =>
        speaker === 'tool'
          ? [
              { role: 'assistant', content: [{ type: 'tool_use', id: text }] },
              {
                role: 'user',
                content: [{ type: 'tool_result', tool_use_id: text, content: text }],
              },
            ]
          : [
              {
                role: speaker === 'user' ? 'user' : 'assistant',
                content: [{ type: 'text', text }],
              },
            ],
      ),
    ),
  }),
  google: round => ({
    systemInstruction: { parts: [{ text: 'Be kind.' }] },
    tools: [{ functionDeclarations: [{ name: 'weather' }] }],
    contents: exchanges(round, (text, speaker) =>
      speaker === 'tool'
        ? [
            { role: 'model', parts: [{ functionCall: { name: 'weather' } }] },
            {
              role: 'user',
              parts: [{ functionResponse: { name: 'weather', response: { text } } }],
            },
          ]
        : [{ role: speaker === 'user' ? 'user' : 'model', parts: [{ text }] }],
    ),
  }),
}

/** Every third answer takes a tool; the last round is only asked. */
function exchanges(
  round: number,
  write: (text: string, speaker: 'user' | 'model' | 'tool') => Message[],
): Message[] {
  return Array.from({ length: round }, (_, index) => {
    const asked = write(`ünïcode question ${index} 猫`, 'user')
    if (index === round - 1) return asked
    const used = index % 3 === 2 ? write(`result ${index}`, 'tool') : []
    return [...asked, ...used, ...write(`answer ${index}`, 'model')]
  }).flat()
}

/** As clients do: the last two messages of the user's side end in a mark, and it moves on with them. */
function marked(messages: Message[]): Message[] {
  const sides = new Set(messages.filter(({ role }) => role === 'user').slice(-2))
  return messages.map(message => {
    if (!sides.has(message)) return message
    const content = message.content as Message[]
    const last = content.length - 1
    return {
      ...message,
      content: content.map((part, at) => (at === last ? { ...part, ...mark } : part)),
    }
  })
}

const context = (round: number): string => `<memory_context>\nof round ${round}\n</memory_context>`

const blockStart: Record<Family, string> = {
  openai: '{"role":"user","content":"<memory_context>',
  anthropic: '{"type":"text","text":"<memory_context>',
  google: '{"text":"<memory_context>',
}

const sent = (family: Family, round: number): string =>
  dialects[family]
    .read(Buffer.from(JSON.stringify(growing[family](round))))
    .write({ context: context(round) })
    .toString()

for (const family of ['openai', 'google'] as const) {
  t.test(
    `${family}: what stands before the last turn of the user is sent again unchanged`,
    async t => {
      for (let round = 1; round < rounds; round++) {
        const [now, next] = [sent(family, round), sent(family, round + 1)]
        const before = now.slice(0, now.indexOf(blockStart[family]))
        t.ok(before.length > 0 && next.startsWith(before), `round ${round}`)
        t.ok(JSON.stringify(growing[family](round)).startsWith(before), 'and is the client’s')
        t.equal(next.split('<memory_context>').length, 2, 'blocks of earlier rounds are not there')
      }
    },
  )
}

/** The request as Anthropic's cache sees it: one entry per tool and block; marks are not content. */
function entries(body: string): { entry: string; marked: boolean }[] {
  const { tools, system, messages } = JSON.parse(body) as Record<string, Message[]>
  const parts = [
    ...tools!,
    ...system!,
    ...messages!.flatMap(({ role, content }) =>
      (content as Message[]).map(part => Object.assign({ role }, part)),
    ),
  ] as Message[]
  return parts.map(({ cache_control, ...part }) => ({
    entry: JSON.stringify(part),
    marked: cache_control !== undefined,
  }))
}

t.test('anthropic: at every mark the cache of the round before is found again', async t => {
  const cache = new Set<string>()
  for (let round = 1; round <= rounds; round++) {
    const parts = entries(sent('anthropic', round))
    const prefix = (end: number): string =>
      parts
        .slice(0, end)
        .map(({ entry }) => entry)
        .join()
    const marks = parts.flatMap(({ marked }, index) => (marked ? [index + 1] : []))
    // The cache looks back from a mark over at most twenty blocks.
    const found = marks.flatMap(end =>
      Array.from({ length: Math.min(20, end) }, (_, back) => end - back).filter(end =>
        cache.has(prefix(end)),
      ),
    )
    const block = parts.findIndex(({ entry }) => entry.includes('<memory_context>'))
    t.notOk(parts[block]?.marked, 'the block carries no mark')
    if (round > 3) {
      // All but the newest exchanges: those since the mark that stood before the last block.
      const fresh = parts.length - Math.max(...found)
      t.ok(fresh <= 9, `round ${round}: ${fresh} of ${parts.length} blocks are new`)
    }
    for (const end of marks) cache.add(prefix(end))
  }
})

t.test('anthropic: what stands before the last turn of the user is the client’s', async t => {
  for (let round = 1; round <= rounds; round++) {
    const client = JSON.stringify(growing.anthropic(round))
    const now = sent('anthropic', round)
    const before = now.slice(0, now.indexOf(blockStart.anthropic))
    t.ok(client.startsWith(before), `round ${round}`)
    t.equal(now.replace(`${JSON.stringify({ type: 'text', text: context(round) })},`, ''), client)
  }
})

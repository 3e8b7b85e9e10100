import t from 'tap'
import { dialects } from '#api/proxy/dialects/index.ts'

/** What makes Anthropic's prompt cache work: of a growing conversation the beginning stays the same. */

const rounds = 20

type Body = Record<string, unknown>
type Message = Record<string, unknown>

const mark = { cache_control: { type: 'ephemeral' } }

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

/** How clients have Anthropic cache a conversation. */
const markings = {
  two: 'the last two messages of the user’s side end in a mark',
  one: 'one mark moves along with the last message',
  'one in texts': 'so does it, and what is not marked is a plain text',
  whole: 'one mark for the whole request',
  'whole, of texts': 'so it is for plain texts',
}
type Marking = keyof typeof markings

const markedAs = (marking: Marking, round: number): Body => ({
  model: 'claude',
  max_tokens: 100,
  ...(marking.startsWith('whole') && mark),
  tools: [{ name: 'weather', input_schema: {}, ...(marking === 'two' && mark) }],
  system: [{ type: 'text', text: 'Be kind.', ...(marking === 'two' && mark) }],
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
              content: marking.endsWith('texts') ? text : [{ type: 'text', text }],
            },
          ],
    ),
    marking,
  ),
})

/** The marks that stand in messages, on the last part of each. */
function marked(messages: Message[], marking: Marking): Message[] {
  const count = { two: 2, one: 1, 'one in texts': 1, whole: 0, 'whole, of texts': 0 }[marking]
  const users = messages.filter(({ role }) => role === 'user')
  const sides = new Set(users.slice(users.length - count))
  return messages.map(message => {
    if (!sides.has(message)) return message
    const content = contentOf(message)
    const last = content.length - 1
    return {
      ...message,
      content: content.map((part, at) => (at === last ? { ...part, ...mark } : part)),
    }
  })
}

const contentOf = ({ content }: Message): Message[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Message[])

const unmarked = (part: Message): Message =>
  Object.fromEntries(Object.entries(part).filter(([name]) => name !== 'cache_control'))

const context = (round: number): string => `<memory_context>\nof round ${round}\n</memory_context>`

/** The request as Anthropic's cache sees it: one entry per tool and block; marks are not content. */
function entries(body: string): { entry: string; marked: boolean }[] {
  const {
    tools,
    system,
    messages,
    cache_control: all,
  } = JSON.parse(body) as Record<string, Message[]>
  const parts = [
    ...tools!,
    ...system!,
    ...messages!.flatMap(message =>
      contentOf(message).map(part => Object.assign({ role: message.role }, part)),
    ),
  ] as Message[]
  return parts.map(({ cache_control, ...part }, index) => ({
    entry: JSON.stringify(part),
    marked: !!cache_control || (!!all && index === parts.length - 1),
  }))
}

const isBlock = ({ entry }: { entry: string }): boolean => entry.includes('<memory_context>')

/**
 * What a request finds in the cache, and leaves there.
 *
 * @returns how many blocks at its end are new.
 */
function read(cache: Set<string>, parts: ReturnType<typeof entries>): number {
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
  for (const end of marks) cache.add(prefix(end))
  return parts.length - Math.max(0, ...found)
}

const written = (body: Body, context?: string, blockIndex?: number): string =>
  dialects.anthropic
    .parseRequest(Buffer.from(JSON.stringify(body)))
    .serialize({ context, blockIndex })
    .toString()

for (const [marking, what] of Object.entries(markings) as [Marking, string][]) {
  t.test(`anthropic, ${what}: the cache of the round before is found again`, async t => {
    const cache = new Set<string>()
    const alone = new Set<string>()
    for (let round = 1; round <= rounds; round++) {
      const body = markedAs(marking, round)
      const parts = entries(written(body, context(round)))
      t.equal(parts.filter(isBlock).length, 1, 'the model is told')
      t.notOk(parts.find(isBlock)?.marked, 'the block carries no mark')
      const fresh = read(cache, parts)
      const without = read(alone, entries(written(body)))
      t.ok(fresh <= without + 1, `round ${round}: ${fresh} new, ${without} without memory`)
    }
  })

  t.test(`anthropic, ${what}: in a loop over tools each step finds the one before`, async t => {
    const cache = new Set<string>()
    const body = markedAs(marking, 5)
    const messages = (body.messages as Message[]).map(({ role, ...message }) => ({
      role,
      content: contentOf(message).map(unmarked),
    }))
    const place = dialects.anthropic.parseRequest(Buffer.from(JSON.stringify(body))).userTurn!
      .blockIndex
    read(cache, entries(written(body, context(5))))
    for (let step = 1; step <= 6; step++) {
      const result = { type: 'tool_result', tool_use_id: 'a', content: `${step}` }
      messages.push(
        { role: 'assistant', content: [{ type: 'tool_use', id: `${step}` }] },
        { role: 'user', content: [marking.startsWith('whole') ? result : { ...result, ...mark }] },
      )
      const parts = entries(written({ ...body, messages }, context(5), place))
      t.ok(read(cache, parts) <= (step === 1 ? 3 : 2), `step ${step}`)
      const last = messages.at(-1)!
      last.content = contentOf(last).map(unmarked)
    }
  })
}

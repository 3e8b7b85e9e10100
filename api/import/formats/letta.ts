import type { Draft, Losses } from '#api/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  firstText,
  isObject,
  type Fields,
} from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import { contentText } from '#api/import/formats/langchain-message.ts'

/** An agent file (.af) of Letta, of 2025's form with `agents` and of the one before it. */
export const letta = jsonFormat({
  product: 'Letta',
  file: 'an agent file (.af)',
  missing: 'archival memory, files, tools and settings of the agent: an agent file has no archive',
  isExportFile: name => /\.(?:af|json)$/.test(name),
  recognizes: value =>
    Array.isArray(value['agents']) ||
    Array.isArray(value['core_memory']) ||
    ('agent_type' in value && Array.isArray(value['messages'])),
  lists: [],
  open: losses => ({
    *drafts(file) {
      const agents = Array.isArray(file['agents']) ? file['agents'].filter(isObject) : [file]
      const blocks = new Map(
        asList(file['blocks'])
          .filter(isObject)
          .map(block => [block['id'], block]),
      )
      for (const agent of agents) {
        const attached = asList(agent['block_ids']).map(id => blocks.get(id))
        const inline = [...asList(agent['memory_blocks']), ...asList(agent['core_memory'])]
        const metadata = { source: 'letta', agent_id: firstText(agent, 'name', 'id') }
        yield* blockDrafts([...attached, ...inline].filter(isObject), file, metadata)
        yield* messageDrafts(agent, metadata, losses)
      }
    },
  }),
})

/** Reads memory blocks: the persona has the role `system`, the others are about the user. */
function* blockDrafts(
  blocks: readonly Fields[],
  file: Fields,
  metadata: Draft['metadata'],
): Generator<Draft> {
  const timestamp = asTime(file['created_at'], file['updated_at'])
  for (const block of blocks) {
    const label = asText(block['label'])
    yield {
      content: asText(block['value']) ?? '',
      role: label === 'persona' ? 'system' : 'user',
      timestamp: asTime(block['updated_at'], block['created_at']) ?? timestamp,
      metadata: { ...metadata, kind: 'block', title: label },
    }
  }
}

function* messageDrafts(
  agent: Fields,
  metadata: Draft['metadata'],
  losses: Losses,
): Generator<Draft> {
  let time: string | undefined
  for (const message of asList(agent['messages']).filter(isObject)) {
    time = asTime(message['created_at']) ?? addMilliseconds(time, 1)
    const said = message['role'] === 'user' ? userText(message) : assistantText(message)
    if (said === undefined || said === '') {
      losses.add('events, thoughts, tool calls and system messages')
      continue
    }
    const role = message['role'] === 'user' ? 'user' : 'assistant'
    yield {
      content: said,
      role,
      timestamp: time,
      metadata: { ...metadata, speaker: asText(message['name']) },
    }
  }
}

const textOf = (message: Fields): string =>
  contentText(message['content'] ?? message['text']).trim()

/** Returns the text of a user's message, plain or in JSON; undefined for events such as heartbeats. */
function userText(message: Fields): string | undefined {
  const text = textOf(message)
  const packed = parseObject(text)
  if (typeof packed['type'] !== 'string') return text
  return packed['type'] === 'user_message' ? asText(packed['message']) : undefined
}

/** Returns the text of an answer: the argument of `send_message` where it was called, else the plain text. */
function assistantText(message: Fields): string | undefined {
  if (message['role'] !== 'assistant') return undefined
  const calls = asList(message['tool_calls']).map(call => asObject(asObject(call)['function']))
  if (calls.length === 0) return textOf(message)
  const sent = calls.find(({ name }) => name === 'send_message')
  return asText(parseObject(asText(sent?.['arguments']) ?? '')['message'])
}

function parseObject(text: string): Fields {
  if (!text.startsWith('{')) return {}
  try {
    return asObject(JSON.parse(text))
  } catch {
    return {}
  }
}

import { asList, asObject, asText, asTime, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import { messageOf } from '#api/import/formats/langchain-message.ts'

/**
 * Messages of LangChain: what `messages_to_dict` and `dumpd` make of them, and the rows in which its histories in
 * Postgres, SQL and Redis keep them (`message` with `session_id`).
 */
export const langchain = jsonFormat({
  product: 'LangChain',
  file: 'JSON with messages as messages_to_dict or dumpd writes them, or rows of a history, in an array or lines',
  missing: 'messages of tools and systems, tool calls, and what a model tells of its answer',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => isMessage(inner(value)),
  lists: ['messages', 'items', 'rows', 'history'],
  open: losses => ({
    *drafts(value) {
      const message = messageOf(inner(value))
      if (!message) {
        losses.add('messages of tools and systems, and those without text')
        return
      }
      const { content, role, name } = message
      const conversation = asText(value['session_id']) ?? asText(value['SessionId'])
      yield {
        content,
        role,
        timestamp: asTime(value['created_at'], value['timestamp']),
        metadata: { source: 'langchain', conversation, speaker: name },
      }
    },
  }),
})

/** The message of a row, which some histories keep as a text. */
function inner(value: Fields): Fields {
  const { message = value['History'] } = value
  if (typeof message !== 'string') return message === undefined ? value : asObject(message)
  try {
    return asObject(JSON.parse(message))
  } catch {
    return value
  }
}

const kinds = new Set(['human', 'ai', 'system', 'tool', 'function', 'chat', 'remove'])

const isMessage = ({ type, data, lc, id }: Fields): boolean =>
  (typeof type === 'string' &&
    kinds.has(type.replace(/MessageChunk$/, '').toLowerCase()) &&
    'content' in asObject(data)) ||
  (typeof lc === 'number' && /Message(?:Chunk)?$/.test(String(asList(id).at(-1))))

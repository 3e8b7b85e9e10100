import type { Draft } from '#api/import/draft.ts'
import { readSessions } from '#scripts/clients/import/formats/agent-sessions.ts'
import { asList, asObject, asText, isObject, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/**
 * Sessions of Claude Code, as 2.1.332 writes them: a line for each message, with the session, the folder and the time.
 * Earlier versions copied a session when it was resumed: a line that was read before has the same `uuid`.
 */
export const claudeCode = jsonFormat({
  product: 'Claude Code',
  file: '~/.claude/projects, or a session of it',
  missing:
    'tool calls and their results, thoughts, subagents, commands of the program; files of memory',
  isExportFile: name =>
    name.endsWith('.jsonl') && !/(?:^|\/)(?:agent-[^/]*|subagents\/.*)$/.test(name),
  recognizes: value =>
    typeof value['type'] === 'string' && ('sessionId' in value || 'leafUuid' in value),
  lists: [],
  open(losses) {
    const sessions = readSessions('claude-code', losses)
    const seen = new Set<unknown>()
    /** By the id of an entry of the session, how many turns there were then. */
    const places = new Map<unknown, number>()
    let session: unknown
    return {
      *drafts(entry) {
        const { uuid, parentUuid, sessionId, cwd, timestamp: time } = entry
        if (sessionId !== undefined && sessionId !== session) {
          session = sessionId
          places.clear()
        }
        const said = readEntry(entry)
        if (said !== undefined && !seen.has(uuid)) {
          seen.add(uuid)
          yield* sessions.open(asText(sessionId) ?? '', asText(cwd) ?? '')
          // A prompt that follows an earlier entry than the last one replaces what came after that.
          const place = parentUuid === null && entry['type'] === 'user' ? 0 : places.get(parentUuid)
          if (said.role === 'user' && place !== undefined) sessions.keepFirst(place)
          sessions.say({ ...said, time })
        }
        if (uuid !== undefined) places.set(uuid, sessions.count())
      },
      end: (): Iterable<Draft> => sessions.close(),
    }
  },
})

/** Marks of lines that are no part of the conversation of a person. */
const others = ['isSidechain', 'isMeta', 'isCompactSummary', 'isApiErrorMessage'] as const

function readEntry(entry: Fields): { role: 'user' | 'assistant'; text: string } | undefined {
  if (others.some(mark => entry[mark] === true)) return undefined
  const { type } = entry
  if (type === 'attachment') return readQueued(asObject(entry['attachment']))
  if (type !== 'user' && type !== 'assistant') return undefined
  const text = textOf(asObject(entry['message'])['content'])
  return text === '' ? undefined : { role: type, text }
}

/** What a person typed while the agent worked. */
function readQueued(attachment: Fields): { role: 'user'; text: string } | undefined {
  const { type, isMeta, origin } = attachment
  if (type !== 'queued_command' || isMeta === true) return undefined
  if (isObject(origin) && origin['kind'] !== 'human') return undefined
  const text = textOf(attachment['prompt'])
  return text === '' ? undefined : { role: 'user', text }
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : asList(content)
        .filter(isObject)
        .flatMap(({ type, text }) => (type === 'text' ? (asText(text) ?? []) : []))
        .join('\n')

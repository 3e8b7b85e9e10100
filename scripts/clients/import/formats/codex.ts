import type { Draft } from '#api/import/draft.ts'
import { readSessions } from '#scripts/clients/import/formats/agent-sessions.ts'
import { asList, asObject, asText, isObject, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import { normalizeRemote } from '#scripts/hooks/repository.ts'

/**
 * Sessions of Codex, as 0.169.0 writes them, and with the events of the versions before: what a person said is an
 * event beside the message that the model got, which has files and instructions in it.
 */
export const codex = jsonFormat({
  product: 'Codex',
  file: '~/.codex with its sessions and archived_sessions, or a rollout of it',
  missing: 'tool calls and their results, reasoning, subagents, images',
  isExportFile: name => /(?:^|\/)rollout-[^/]*\.jsonl$/.test(name),
  recognizes: value => isObject(value['payload']) && typeof value['type'] === 'string',
  lists: [],
  open(losses) {
    const sessions = readSessions('codex', losses)
    let isOfPerson = true
    let last: string | undefined
    return {
      *drafts({ type, payload: given, timestamp: time }) {
        const payload = asObject(given)
        if (type === 'session_meta') {
          isOfPerson = !isSubagent(payload)
          if (!isOfPerson) losses.add('sessions of subagents')
          const url = asText(asObject(payload['git'])['repository_url'])
          const repository = url === undefined ? undefined : normalizeRemote(url)
          const folder = asText(payload['cwd']) ?? ''
          yield* sessions.open(asText(payload['id']) ?? '', folder, repository)
        }
        const { type: event, num_turns: taken } = payload
        if (event === 'thread_rolled_back' && typeof taken === 'number' && isOfPerson) {
          sessions.keepFirst(Math.max(0, sessions.count() - taken))
          last = undefined
        }
        const said = type === 'event_msg' && isOfPerson ? readEvent(payload) : undefined
        if (said === undefined) return
        // Versions that write both events of a message write the same text.
        if (said.role === 'user' && said.text === last) return
        last = said.role === 'user' ? said.text : undefined
        sessions.say({ ...said, time })
      },
      end: (): Iterable<Draft> => sessions.close(),
    }
  },
})

const isSubagent = ({ source, thread_source }: Fields): boolean =>
  (isObject(source) && 'subagent' in source) || thread_source === 'subagent'

function readEvent(payload: Fields): { role: 'user' | 'assistant'; text: string } | undefined {
  const item = asObject(payload['item'])
  const kind = payload['type'] === 'item_completed' ? item['type'] : payload['type']
  const text =
    asText(payload['message']) ?? asText(payload['last_agent_message']) ?? textOf(item['content'])
  if (text === '') return undefined
  if (kind === 'user_message' || kind === 'UserMessage') return { role: 'user', text }
  const isAnswer = kind === 'agent_message' || kind === 'AgentMessage' || kind === 'task_complete'
  return isAnswer ? { role: 'assistant', text } : undefined
}

const textOf = (content: unknown): string =>
  asList(content)
    .filter(isObject)
    .flatMap(({ text }) => asText(text) ?? [])
    .join('\n')

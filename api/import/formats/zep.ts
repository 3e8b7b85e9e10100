import type { Draft, Losses } from '#api/import/draft.ts'
import {
  asList,
  asText,
  asTime,
  firstText,
  isObject,
  type Fields,
} from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/** Messages of threads, episodes and facts (edges) as Zep's API and SDKs answer them. */
export const zep = jsonFormat({
  product: 'Zep',
  file: 'JSON with messages, episodes, or facts (edges), in an object, an array or lines',
  missing: 'entities, their summaries and links; facts are stored as their sentences',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => isFact(value) || isSaid(value) || Array.isArray(value['messages']),
  lists: ['threads', 'sessions', 'messages', 'episodes', 'facts', 'edges', 'relevant_facts'],
  open: losses => ({ drafts: value => draftsOf(value, losses) }),
})

const isFact = (value: Fields): boolean => asText(value['fact']) !== undefined
const isSaid = (value: Fields): boolean =>
  asText(value['content']) !== undefined &&
  ('role_type' in value || 'role' in value || 'source' in value)

function* draftsOf(value: Fields, losses: Losses, thread?: string): Generator<Draft> {
  const conversation = firstText(value, 'thread_id', 'session_id') ?? thread
  for (const name of ['messages', 'episodes', 'facts', 'edges', 'relevant_facts']) {
    for (const item of asList(value[name]).filter(isObject))
      yield* draftsOf(item, losses, conversation)
  }
  if (isFact(value)) yield factDraft(value)
  else if (isSaid(value)) yield* saidDraft(value, losses, conversation)
  else losses.add('entities and summaries', asList(value['nodes']).length)
}

/** Makes the draft of a fact: its time is that from which it was true, its text names the day on which that ended. */
function factDraft(value: Fields): Draft {
  const ended = asTime(value['invalid_at'], value['expired_at'])
  const sentence = asText(value['fact']) ?? ''
  return {
    content: ended === undefined ? sentence : `${sentence} (until ${ended.slice(0, 10)})`,
    timestamp: asTime(value['valid_at'], value['created_at']),
    metadata: {
      source: 'zep',
      kind: 'fact',
      relation: asText(value['name']),
      ...(ended !== undefined && { invalid_at: ended }),
    },
  }
}

const roles = new Set(['user', 'human', 'assistant', 'ai'])

/** Makes the draft of a message or an episode: its role and name stand in `role_type` and `role`, or in `role` and `name`. */
function* saidDraft(value: Fields, losses: Losses, conversation?: string): Generator<Draft> {
  const role = firstText(value, 'role_type', 'role')?.toLowerCase() ?? 'user'
  const isMessage = 'role_type' in value || 'role' in value
  if (isMessage && !roles.has(role) && role !== 'norole') {
    losses.add('messages of tools and systems')
    return
  }
  if (value['source'] === 'json') {
    losses.add('episodes of JSON')
    return
  }
  yield {
    content: asText(value['content']) ?? '',
    role: role === 'assistant' || role === 'ai' ? 'assistant' : 'user',
    timestamp: asTime(value['created_at']),
    metadata: {
      source: 'zep',
      conversation,
      speaker: 'role_type' in value ? value['role'] : value['name'],
      kind: isMessage ? undefined : 'episode',
      title: asText(value['source_description']),
    },
  }
}

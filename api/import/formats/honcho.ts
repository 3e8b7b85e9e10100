import { asObject, asText, asTime, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import type { Draft } from '#api/import/draft.ts'

/**
 * Messages and conclusions as Honcho's API, SDKs and command line list them. A peer that is given before them is whose
 * vault it becomes: the words of other peers are those of an assistant, with their name.
 */
export const honcho = jsonFormat({
  product: 'Honcho',
  file: 'JSON with messages and conclusions, a page a line or in an array, after the peer whose they are',
  missing:
    'representations, peer cards and summaries, which a model wrote; settings, scopes and files',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => isMessage(value) || isConclusion(value) || isPeer(value),
  lists: ['items', 'messages', 'conclusions', 'peers'],
  open(losses) {
    const people = new Set<string>()
    let arePeersNamed = false
    return {
      *drafts(value): Generator<Draft> {
        if (isPeer(value)) {
          arePeersNamed = true
          if (asObject(value['configuration'])['observe_me'] !== false)
            people.add(String(value['id']))
        } else if (isConclusion(value)) {
          const observed = String(value['observed_id'])
          if (arePeersNamed && !people.has(observed)) losses.add('conclusions about other peers')
          else yield toConclusion(value)
        } else {
          const isOfPerson = arePeersNamed
            ? people.has(String(value['peer_id']))
            : value['peer_id'] !== 'assistant'
          yield toMessage(value, isOfPerson)
        }
      },
    }
  },
})

const isPeer = (value: Fields): boolean =>
  asText(value['id']) !== undefined &&
  'workspace_id' in value &&
  'configuration' in value &&
  !('is_active' in value) &&
  !('content' in value)

const isMessage = (value: Fields): boolean =>
  typeof value['content'] === 'string' && asText(value['peer_id']) !== undefined

const isConclusion = (value: Fields): boolean =>
  typeof value['content'] === 'string' && asText(value['observed_id']) !== undefined

const toMessage = (value: Fields, isOfPerson: boolean): Draft => ({
  content: String(value['content']),
  role: isOfPerson ? 'user' : 'assistant',
  timestamp: asTime(value['created_at']),
  metadata: {
    source: 'honcho',
    speaker: value['peer_id'],
    conversation: asText(value['session_id']),
    ...asObject(value['metadata']),
  },
})

/** A sentence that Honcho's model drew; `explicit` ones repeat what was said. */
const toConclusion = (value: Fields): Draft => ({
  content: String(value['content']),
  timestamp: asTime(value['created_at']),
  metadata: {
    source: 'honcho',
    kind: 'conclusion',
    level: value['level'],
    speaker: value['observer_id'],
    about: value['observed_id'],
    conversation: asText(value['session_id']),
  },
})

import type { Draft, Losses } from '#scripts/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  firstText,
  isObject,
  type Fields,
} from '#scripts/import/formats/fields.ts'
import { jsonFormat } from '#scripts/import/formats/format.ts'

/** `conversations.json` of ChatGPT's export: trees of messages, of which the branch last shown is read. */
export const chatgpt = jsonFormat({
  product: 'ChatGPT',
  file: 'the zip that was mailed, or conversations.json',
  missing: 'images, files, voice, tool calls, thoughts, and the memories kept by ChatGPT itself',
  isExportFile: name => /(?:^|\/)conversations(?:[-_]\d{1,6})?\.json$/.test(name),
  recognizes: value => isObject(value['mapping']),
  lists: ['conversations'],
  open(losses) {
    const instructions = new Set<string>()
    return {
      *drafts(conversation) {
        const metadata = {
          source: 'chatgpt',
          conversation: firstText(conversation, 'conversation_id', 'id'),
          title: asText(conversation['title']),
        }
        let time = asTime(conversation['create_time'], conversation['update_time'])
        for (const message of shownMessages(conversation, losses)) {
          time = asTime(message['create_time']) ?? addMilliseconds(time, 1)
          const draft = toDraft(message, losses)
          if (!draft) continue
          // Custom instructions stand at the beginning of every conversation.
          if (draft.metadata['kind'] !== undefined) {
            if (instructions.has(draft.content)) continue
            instructions.add(draft.content)
          }
          yield { ...draft, timestamp: time, metadata: { ...metadata, ...draft.metadata } }
        }
      },
    }
  },
})

/** The messages from the beginning to the one shown last; those of other branches are counted. */
function shownMessages(conversation: Fields, losses: Losses): Fields[] {
  const nodes = asObject(conversation['mapping'])
  const shown = new Set<string>()
  const messages: Fields[] = []
  let id = asText(conversation['current_node']) ?? newestLeaf(nodes)
  while (id !== undefined && !shown.has(id) && isObject(nodes[id])) {
    shown.add(id)
    const node = asObject(nodes[id])
    if (isObject(node['message'])) messages.push(node['message'])
    id = asText(node['parent'])
  }
  const others = Object.keys(nodes).filter(
    other => !shown.has(other) && isConversation(asObject(asObject(nodes[other])['message'])),
  )
  losses.add('messages of branches that were edited or regenerated', others.length)
  return messages.reverse()
}

/** The last message of a conversation that does not name it. */
function newestLeaf(nodes: Fields): string | undefined {
  const timeOf = (id: string): number =>
    Number(asObject(asObject(nodes[id])['message'])['create_time'] ?? 0)
  return Object.keys(nodes)
    .filter(id => asList(asObject(nodes[id])['children']).length === 0)
    .toSorted((one, other) => timeOf(other) - timeOf(one))[0]
}

const roleOf = (message: Fields): unknown => asObject(message['author'])['role']

const isConversation = (message: Fields): boolean =>
  (roleOf(message) === 'user' || roleOf(message) === 'assistant') && textOf(message) !== ''

function toDraft(message: Fields, losses: Losses): Draft | undefined {
  const role = roleOf(message)
  const { content_type: type, ...content } = asObject(message['content'])
  const profile = aboutUser(message, content)
  if (profile !== undefined) return { content: profile, metadata: { kind: 'custom_instructions' } }
  if (type === undefined || (role !== 'user' && role !== 'assistant')) {
    if (role === 'tool') losses.add('tool calls, their results and thoughts')
    return undefined
  }
  const { is_visually_hidden_from_conversation: hidden, model_slug: model } = asObject(
    message['metadata'],
  )
  const isSpoken = type === 'text' || type === 'multimodal_text'
  const isForTool = asText(message['recipient']) !== undefined && message['recipient'] !== 'all'
  if (!isSpoken || isForTool) {
    losses.add('tool calls, their results and thoughts')
    return undefined
  }
  if (hidden === true || message['weight'] === 0) return undefined
  losses.add('images, recordings and files', asList(content['parts']).filter(isAsset).length)
  const text = textOf(message)
  if (text === '') return undefined
  return { content: text, role, metadata: { model: asText(model) } }
}

const isAsset = (part: unknown): boolean => isObject(part) && asText(part['text']) === undefined

/** The text of a message; a recording counts by its transcription. */
const textOf = (message: Fields): string =>
  asList(asObject(message['content'])['parts'])
    .map(part => (typeof part === 'string' ? part : (asText(asObject(part)['text']) ?? '')))
    .join('\n')
    .replaceAll(citation, '')
    .trim()

/** References to search results, in characters for private use. */
const citation = /\uE200[^\uE200\uE201]{0,1000}\uE201/g

/** What users wrote about themselves in their custom instructions, of today's form and of 2023's. */
function aboutUser(message: Fields, content: Fields): string | undefined {
  const { user_context_message_data: older } = asObject(message['metadata'])
  const text = asText(content['user_profile']) ?? asText(asObject(older)['about_user_message'])
  if (text === undefined) return undefined
  const [, fenced] = text.split('```')
  return (fenced ?? text).trim() || undefined
}

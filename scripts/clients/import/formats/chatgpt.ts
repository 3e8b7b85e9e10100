import type { Draft, Losses } from '#scripts/clients/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  firstText,
  isObject,
  type Fields,
} from '#scripts/clients/import/formats/fields.ts'
import { branchShown, otherBranches } from '#scripts/clients/import/formats/branches.ts'
import { withoutMarks } from '#scripts/clients/import/formats/chatgpt-marks.ts'
import { jsonFormat } from '#scripts/clients/import/formats/format.ts'

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
          // The whole export is imported, since a person asked for that; by this field such conversations can be deleted.
          do_not_remember: conversation['is_do_not_remember'] === true ? true : undefined,
        }
        let time = asTime(conversation['create_time'], conversation['update_time'])
        for (const message of shownMessages(conversation, losses)) {
          time = asTime(message['create_time']) ?? addMilliseconds(time, 1)
          for (const [index, draft] of toDrafts(message, losses).entries()) {
            // Custom instructions stand at the beginning of every conversation.
            if (draft.metadata['kind'] !== undefined) {
              if (instructions.has(draft.content)) continue
              instructions.add(draft.content)
            }
            const timestamp = addMilliseconds(time, index)
            yield { ...draft, timestamp, metadata: { ...metadata, ...draft.metadata } }
          }
        }
      },
    }
  },
})

/** The messages from the beginning to the one shown last; those of other branches are counted. */
function shownMessages(conversation: Fields, losses: Losses): Fields[] {
  const nodes = new Map(
    Object.entries(asObject(conversation['mapping'])).flatMap(([id, node]) =>
      isObject(node)
        ? [[id, { message: asObject(node['message']), parent: asText(node['parent']) }]]
        : [],
    ),
  )
  const tree = new Map(
    [...nodes].map(([id, { message, parent }]) => [
      id,
      { parent, time: Number(message['create_time'] ?? 0) },
    ]),
  )
  const shown = branchShown(tree, asText(conversation['current_node']))
  const others = [...nodes].filter(([id, { message }]) => !shown.has(id) && isConversation(message))
  losses.add(otherBranches, others.length)
  return [...shown].map(id => nodes.get(id)!.message)
}

const roleOf = (message: Fields): unknown => asObject(message['author'])['role']

const isConversation = (message: Fields): boolean =>
  (roleOf(message) === 'user' || roleOf(message) === 'assistant') && textOf(message) !== ''

function toDrafts(message: Fields, losses: Losses): Draft[] {
  const role = roleOf(message)
  const { content_type: type, ...content } = asObject(message['content'])
  const instructions = customInstructions(message, content)
  if (instructions.length > 0) {
    const metadata = { kind: 'custom_instructions' }
    return instructions.map(text => ({ content: text, metadata }))
  }
  if (type === undefined || (role !== 'user' && role !== 'assistant')) {
    if (role === 'tool') losses.add('tool calls, their results and thoughts')
    return []
  }
  const { is_visually_hidden_from_conversation: hidden, model_slug: model } = asObject(
    message['metadata'],
  )
  const isSpoken = type === 'text' || type === 'multimodal_text'
  const isForTool = asText(message['recipient']) !== undefined && message['recipient'] !== 'all'
  if (!isSpoken || isForTool) {
    losses.add('tool calls, their results and thoughts')
    return []
  }
  if (hidden === true || message['weight'] === 0) return []
  losses.add('images, recordings and files', asList(content['parts']).filter(isAsset).length)
  const text = textOf(message, losses)
  return text === '' ? [] : [{ content: text, role, metadata: { model: asText(model) } }]
}

const isAsset = (part: unknown): boolean => isObject(part) && asText(part['text']) === undefined

/** The text of a message; a recording counts by its transcription. Answers have marks, what users type does not. */
function textOf(message: Fields, losses?: Losses): string {
  const given = asList(asObject(message['content'])['parts'])
    .map(part => (typeof part === 'string' ? part : (asText(asObject(part)['text']) ?? '')))
    .join('\n')
  if (roleOf(message) !== 'assistant') return given.trim()
  const { text, dropped } = withoutMarks(given)
  losses?.add('references to sources, pictures and widgets', dropped)
  return text.trim()
}

/** What users wrote of themselves and how they want to be answered, in today's form and in that of 2023. */
function customInstructions(message: Fields, content: Fields): string[] {
  const older = asObject(asObject(message['metadata'])['user_context_message_data'])
  return [
    asText(content['user_profile']) ?? asText(older['about_user_message']),
    asText(content['user_instructions']) ?? asText(older['about_model_message']),
  ].flatMap(text => (text === undefined ? [] : [withoutFence(text).trim()]).filter(Boolean))
}

/** ChatGPT tells its model in a sentence what the text is, and encloses it. */
const withoutFence = (text: string): string => /^[^`]*:\s*```([^]*)```\s*$/.exec(text)?.[1] ?? text

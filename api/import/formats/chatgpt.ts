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
import { branchShown, otherBranches } from '#api/import/formats/branches.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

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

/** Returns the messages from the beginning to the one shown last; those of other branches are counted. */
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

/** Returns the text of a message, of a recording its transcription. Only answers have marks. */
function textOf(message: Fields, losses?: Losses): string {
  const given = asList(asObject(message['content'])['parts'])
    .map(part => (typeof part === 'string' ? part : (asText(asObject(part)['text']) ?? '')))
    .join('\n')
  if (roleOf(message) !== 'assistant') return given.trim()
  const { text, dropped } = withoutMarks(given)
  losses?.add('references to sources, pictures and widgets', dropped)
  return text.trim()
}

/** Returns what users wrote about themselves and about answers, in today's form and in that of 2023. */
function customInstructions(message: Fields, content: Fields): string[] {
  const older = asObject(asObject(message['metadata'])['user_context_message_data'])
  return [
    asText(content['user_profile']) ?? asText(older['about_user_message']),
    asText(content['user_instructions']) ?? asText(older['about_model_message']),
  ].flatMap(text => (text === undefined ? [] : [withoutFence(text).trim()]).filter(Boolean))
}

/** Removes the sentence and the fence that ChatGPT puts around custom instructions. */
const withoutFence = (text: string): string => /^[^`]*:\s*```([^]*)```\s*$/.exec(text)?.[1] ?? text

/**
 * Marks in answers of ChatGPT, of characters for private use: U+E200 kind U+E202 field U+E202 field … U+E201 is a
 * reference, a link or a widget; U+E203 and U+E204 enclose words that a reference is about. Forms of exports as
 * daugaard47/ChatGPT_Conversations_To_Markdown#8 and CherryHQ/cherry-studio PR 16164 have them.
 */
const group = /\uE200([^\uE200\uE201]*)\uE201/g
const strayMark = /[\uE200-\uE206]/g

/** References to sources of 2023 and 2024 (pionxzh/chatgpt-exporter#259): `【12†source】`, `【4:0†lease.pdf】`. */
const olderReference = /【\d{1,4}(?::\d{1,4})?†[^】\n]{1,200}】/g

/** Kinds whose fields only name sources: results of a search, files, pictures. */
const references = new Set(['cite', 'filecite', 'i'])
const sourceId = /^(?:turn\d+[a-z_]+\d+,?)+$/

/**
 * Removes the marks from an answer; the words that they enclose stay.
 *
 * @returns it, and how many marks had no words
 */
function withoutMarks(text: string): { text: string; dropped: number } {
  let dropped = 0
  const words = text.replaceAll(group, (_, mark: string) => {
    const [kind, ...fields] = mark.split('\uE202') as [string, ...string[]]
    const shown = references.has(kind) ? '' : shownWords(fields)
    if (shown === '') dropped++
    return shown
  })
  const plain = words.replaceAll(olderReference, () => {
    dropped++
    return ''
  })
  return { text: plain.replaceAll(strayMark, ''), dropped }
}

/** Returns the words of a mark: of `["restaurant","Casa Marisol","Porto"]` the second text, of a label with an address a link. */
function shownWords(fields: readonly string[]): string {
  const [label, address] = fields
  if (label && /^https?:/.test(address ?? '')) return `[${label}](${address})`
  return fields
    .filter(field => !sourceId.test(field))
    .map(field => (/^\s*[[{]/.test(field) ? nameInJson(field) : field))
    .filter(words => words !== '')
    .join(' ')
}

function nameInJson(field: string): string {
  try {
    const value: unknown = JSON.parse(field)
    const name: unknown = Array.isArray(value) ? (value[1] ?? value[0]) : ''
    return typeof name === 'string' ? name : ''
  } catch {
    return field
  }
}

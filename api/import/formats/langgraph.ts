import type { Draft, Losses } from '#api/import/draft.ts'
import { messageOf, type ThreadMessage } from '#api/import/formats/langchain-message.ts'
import {
  asList,
  asObject,
  asText,
  asTime,
  firstText,
  isObject,
  type Fields,
} from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/** Items of a LangGraph store, and the messages of its checkpoints or thread states. */
export const langgraph = jsonFormat({
  product: 'LangGraph',
  file: 'JSON with items of a store, checkpoints, or states of threads, in an array or lines',
  missing: 'state other than messages, pending writes, tool calls, and vectors of a store',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => isItem(value) || messagesOf(value).length > 0,
  lists: ['items', 'checkpoints', 'states', 'history'],
  open(losses) {
    // Every checkpoint has all messages before it: each is stored once, at its earliest time.
    const messages = new Map<string, Draft>()
    return {
      *drafts(value) {
        if (isItem(value)) yield itemDraft(value, losses)
        else collectMessages(value, messages, losses)
      },
      end: () => messages.values(),
    }
  },
})

const isItem = (value: Fields): boolean =>
  'key' in value && 'value' in value && ('namespace' in value || 'prefix' in value)

function itemDraft(item: Fields, losses: Losses): Draft {
  const { namespace, prefix, key } = item
  const path = Array.isArray(namespace) ? namespace.join('/') : (asText(namespace ?? prefix) ?? '')
  const value = asObject(item['value'])
  const content = textOf(value)
  if (content === undefined) losses.add('items without a text, stored as their JSON')
  return {
    content: content ?? JSON.stringify(item['value']),
    timestamp: asTime(item['created_at'], item['createdAt'], item['updated_at'], item['updatedAt']),
    metadata: { source: 'langgraph', namespace: path, key: asText(key), kind: value['kind'] },
  }
}

/** Returns the text of an item from the fields that programs usually use. */
function textOf(value: Fields): string | undefined {
  const inner = value['content']
  if (isObject(inner)) return textOf(inner)
  return firstText(value, 'content', 'text', 'memory', 'data', 'fact', 'summary')
}

/** Returns the messages of a checkpoint tuple, of a snapshot of a state, or of a thread of the API. */
const messagesOf = (value: Fields): readonly unknown[] =>
  asList(
    asObject(asObject(value['checkpoint'])['channel_values'])['messages'] ??
      asObject(value['channel_values'])['messages'] ??
      asObject(value['values'])['messages'],
  )

function collectMessages(value: Fields, messages: Map<string, Draft>, losses: Losses): void {
  const checkpoint = asObject(value['checkpoint'])
  const config = asObject(asObject(value['config'])['configurable'])
  const thread =
    asText(value['thread_id']) ?? asText(config['thread_id']) ?? asText(checkpoint['thread_id'])
  const time = asTime(checkpoint['ts'], value['ts'], value['created_at'], value['createdAt'])
  for (const [index, given] of messagesOf(value).entries()) {
    const message = messageOf(given)
    if (!message) {
      losses.add('messages of tools and systems, as often as checkpoints repeat them')
      continue
    }
    const id = JSON.stringify([thread, message.id ?? [index, message.content]])
    const known = messages.get(id)
    if (known?.timestamp !== undefined && (time === undefined || known.timestamp <= time)) continue
    messages.set(id, messageDraft(message, { thread, time }))
  }
}

const messageDraft = (
  { content, role, name }: ThreadMessage,
  { thread, time }: { thread: string | undefined; time: string | undefined },
): Draft => ({
  content,
  role,
  timestamp: time,
  metadata: { source: 'langgraph', conversation: thread, speaker: name },
})

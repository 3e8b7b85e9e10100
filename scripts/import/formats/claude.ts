import type { Draft, Losses } from '#scripts/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  isObject,
  type Fields,
} from '#scripts/import/formats/fields.ts'
import { jsonFormat } from '#scripts/import/formats/format.ts'

/** `conversations.json` and `memories.json` of Claude's export. */
export const claude = jsonFormat({
  product: 'Claude',
  file: 'the zip that was mailed, or conversations.json',
  missing: 'attachments and files, artifacts, tool calls and thoughts; knowledge of projects',
  isExportFile: name => /(?:^|\/)(?:conversations|memories)\.json$/.test(name),
  recognizes: value => Array.isArray(value['chat_messages']) || 'conversations_memory' in value,
  lists: ['conversations'],
  open: losses => ({
    drafts: value =>
      'conversations_memory' in value ? rememberedDrafts(value) : messageDrafts(value, losses),
  }),
})

function* messageDrafts(conversation: Fields, losses: Losses): Generator<Draft> {
  const metadata = {
    source: 'claude',
    conversation: asText(conversation['uuid']),
    title: asText(conversation['name']),
  }
  let time = asTime(conversation['created_at'])
  for (const given of asList(conversation['chat_messages'])) {
    const message = asObject(given)
    time = asTime(message['created_at']) ?? addMilliseconds(time, 1)
    const attached = asList(message['attachments']).length + asList(message['files']).length
    losses.add('attachments and files', attached)
    const content = textOf(message, losses)
    const role = message['sender'] === 'human' ? 'user' : 'assistant'
    if (content !== '') yield { content, role, timestamp: time, metadata }
  }
}

/** The text blocks of a message; older exports have its text only. */
function textOf(message: Fields, losses: Losses): string {
  const blocks = asList(message['content']).filter(isObject)
  const texts = blocks.filter(({ type }) => type === 'text')
  losses.add('tool calls, their results and thoughts', blocks.length - texts.length)
  const text = texts.map(block => asText(block['text']) ?? '').join('\n\n')
  return (text.trim() === '' && blocks.length === 0 ? (asText(message['text']) ?? '') : text).trim()
}

/** What Claude remembers by itself: a summary of the conversations, and one for each project. */
function* rememberedDrafts(value: Fields): Generator<Draft> {
  const summaries: [string | undefined, unknown][] = [
    [undefined, value['conversations_memory']],
    ...Object.entries(asObject(value['project_memories'])),
  ]
  for (const [project, summary] of summaries) {
    const content = asText(summary)
    const metadata = { source: 'claude', kind: 'memory', project }
    if (content !== undefined) yield { content, role: 'assistant', metadata }
  }
}

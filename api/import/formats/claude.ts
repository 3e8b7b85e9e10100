import type { Draft, Losses } from '#api/import/draft.ts'
import {
  addMilliseconds,
  asList,
  asObject,
  asText,
  asTime,
  isObject,
  type Fields,
} from '#api/import/formats/fields.ts'
import { branchShown, otherBranches } from '#api/import/formats/branches.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/** `conversations.json` and `memories.json` of Claude's export. */
export const claude = jsonFormat({
  product: 'Claude',
  file: 'the zip that was mailed, or conversations.json',
  missing: 'attachments and files, artifacts, tool calls and thoughts; knowledge of projects',
  isExportFile: name => /(?:^|\/)(?:conversations|memories)(?:[-_]\d{1,6})?\.json$/.test(name),
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
  for (const message of shownMessages(conversation, losses)) {
    time = asTime(message['created_at']) ?? addMilliseconds(time, 1)
    const attachments = asList(message['attachments']).map(asObject)
    const pastes = attachments
      .filter(isPaste)
      .flatMap(file => asText(file['extracted_content']) ?? [])
    const files = attachments.length - pastes.length + asList(message['files']).length
    losses.add('attachments and files', files)
    const content = [textOf(message, losses), ...pastes].join('\n\n').trim()
    const role = message['sender'] === 'human' ? 'user' : 'assistant'
    if (content !== '') yield { content, role, timestamp: time, metadata }
  }
}

/** Returns whether an attachment is a pasted text, which has no name of its own (lugia19/Claude-QoL#43). */
const isPaste = ({ file_name: name }: Fields): boolean =>
  name === undefined || name === null || name === '' || name === 'paste.txt'

/**
 * The messages without those that an edit or a new answer replaced, which are counted. Only what another branch
 * of a shown message holds is left out: without parents, or below one that the export lacks, all is shown.
 */
function shownMessages(conversation: Fields, losses: Losses): Fields[] {
  const messages = asList(conversation['chat_messages']).map(asObject)
  const tree = new Map(
    messages.flatMap(message => {
      const id = asText(message['uuid'])
      const parent = asText(message['parent_message_uuid'])
      const time = Date.parse(asTime(message['created_at']) ?? '') || 0
      return id === undefined ? [] : [[id, { parent, time }] as const]
    }),
  )
  const shown = branchShown(tree, asText(conversation['current_leaf_message_uuid']))
  const forks = new Set([...shown].flatMap(id => [id, tree.get(id)!.parent]))
  const replaced = new Set<string>()
  const kept = messages.filter(({ uuid }) => {
    const id = asText(uuid)
    const parent = id === undefined ? undefined : tree.get(id)!.parent
    if (id === undefined || parent === undefined || shown.has(id)) return true
    if (!forks.has(parent) && !replaced.has(parent)) return true
    replaced.add(id)
    return false
  })
  losses.add(otherBranches, messages.length - kept.length)
  return kept
}

/** Returns the text of a message, typed or spoken (osteele/claude-chat-viewer#5); older exports have its `text` only. */
function textOf(message: Fields, losses: Losses): string {
  const blocks = asList(message['content']).filter(isObject)
  const texts = blocks.filter(({ type }) => type === 'text' || type === 'voice_note')
  losses.add('tool calls, their results and thoughts', blocks.length - texts.length)
  const text = texts.map(block => asText(block['text']) ?? '').join('\n\n')
  const isTextOnly = blocks.length === texts.length
  const said = text.trim() === '' && isTextOnly ? (asText(message['text']) ?? '') : text
  if (message['sender'] === 'human' || !said.includes('</ant')) return said.trim()
  const count = () => losses.add('tool calls, their results and thoughts')
  return thoughtTags.reduce((words, name) => withoutElements(words, name, count), said).trim()
}

/** Thoughts and artifacts of 2024, which stood in the text. */
const thoughtTags = ['antThinking', 'antArtifact']

/**
 * The text without the elements of a name; one that does not end stays. In time linear to the text.
 *
 * @param onElement called for each
 */
function withoutElements(text: string, name: string, onElement: () => void): string {
  const end = `</${name}>`
  let kept = ''
  let rest = text
  for (;;) {
    const at = rest.indexOf(`<${name}`)
    const closes = at === -1 ? -1 : rest.indexOf(end, at)
    if (closes === -1) return kept + rest
    onElement()
    kept += rest.slice(0, at)
    rest = rest.slice(closes + end.length).trimStart()
  }
}

/** Reads Claude's own memory: a summary of the conversations, and one for each project. */
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

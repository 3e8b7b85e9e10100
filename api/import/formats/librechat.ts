import { branchShown, otherBranches } from '#api/import/formats/branches.ts'
import { asList, asObject, asText, asTime, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import { contentText } from '#api/import/formats/langchain-message.ts'
import type { Draft, Losses } from '#api/import/draft.ts'

/** A conversation as LibreChat exports it: a list of messages, or a tree of `children`. */
export const librechat = jsonFormat({
  product: 'LibreChat',
  file: 'the JSON of Export conversation; several in a folder',
  missing:
    'files and pictures, tool calls, thoughts, presets, and the memories kept by LibreChat itself',
  isExportFile: name => name.endsWith('.json'),
  recognizes: value =>
    asList(value['messages']).some(
      message => 'isCreatedByUser' in asObject(message) && 'messageId' in asObject(message),
    ),
  lists: ['conversations'],
  open: losses => ({ drafts: value => readConversation(value, losses) }),
})

function* readConversation(value: Fields, losses: Losses): Generator<Draft> {
  const messages = new Map<string, Fields>()
  const waiting = [...asList(value['messages'])]
  for (const given of waiting) {
    const message = asObject(given)
    const id = asText(message['messageId'])
    if (id !== undefined) messages.set(id, message)
    waiting.push(...asList(message['children']))
  }
  const tree = new Map(
    [...messages].map(([id, message]) => [
      id,
      {
        parent: asText(message['parentMessageId']),
        time: Date.parse(asTime(message['createdAt']) ?? '') || 0,
      },
    ]),
  )
  const shown = branchShown(tree, undefined)
  losses.add(otherBranches, messages.size - shown.size)
  for (const id of shown) {
    const message = messages.get(id)!
    const { text, content, isCreatedByUser, createdAt, model } = message
    const words = (asText(text) ?? contentText(content)).trim()
    if (words === '') continue
    yield {
      content: words,
      role: isCreatedByUser === true ? 'user' : 'assistant',
      timestamp: asTime(createdAt, value['exportAt']),
      metadata: {
        source: 'librechat',
        conversation: asText(value['conversationId']),
        title: asText(value['title']),
        model: isCreatedByUser === true ? undefined : asText(model),
      },
    }
  }
}

import { branchShown, otherBranches } from '#api/import/formats/branches.ts'
import { asObject, asText, asTime, isObject, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import { contentText } from '#api/import/formats/langchain-message.ts'
import type { Draft, Losses } from '#api/import/draft.ts'

/** Chats as Open WebUI exports them: one, all of a person, or all of the database. */
export const openWebui = jsonFormat({
  product: 'Open WebUI',
  file: 'the JSON of Settings, Data Controls, Export Chats, or of one chat',
  missing:
    'files and pictures, folders, notes, knowledge, and the memories kept by Open WebUI itself',
  isExportFile: name => name.endsWith('.json'),
  recognizes: value => isObject(asObject(asObject(value['chat'])['history'])['messages']),
  lists: ['chats', 'data', 'items'],
  open: losses => ({ drafts: value => readChat(value, losses) }),
})

function* readChat(value: Fields, losses: Losses): Generator<Draft> {
  const chat = asObject(value['chat'])
  const history = asObject(chat['history'])
  const messages = new Map(
    Object.entries(asObject(history['messages'])).map(([id, message]) => [id, asObject(message)]),
  )
  const tree = new Map(
    [...messages].map(([id, message]) => [
      id,
      { parent: asText(message['parentId']), time: Number(message['timestamp'] ?? 0) },
    ]),
  )
  const shown = branchShown(tree, asText(history['currentId']))
  losses.add(otherBranches, messages.size - shown.size)
  for (const id of shown) {
    const { role, content, timestamp, model } = messages.get(id)!
    const text = contentText(content).trim()
    if (text === '' || (role !== 'user' && role !== 'assistant')) continue
    yield {
      content: text,
      role,
      timestamp: asTime(timestamp, value['created_at']),
      metadata: {
        source: 'open-webui',
        conversation: asText(value['id']),
        title: asText(value['title']) ?? asText(chat['title']),
        model: role === 'assistant' ? asText(model) : undefined,
      },
    }
  }
}

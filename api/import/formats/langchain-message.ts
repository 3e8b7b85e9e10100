import { asList, asObject, asText, type Fields } from '#api/import/formats/fields.ts'

/** A message of a user or a model in a thread. */
export type ThreadMessage = {
  id: string | undefined
  role: 'user' | 'assistant'
  name: string | undefined
  content: string
}

const roles: Readonly<Record<string, ThreadMessage['role']>> = {
  human: 'user',
  user: 'user',
  HumanMessage: 'user',
  HumanMessageChunk: 'user',
  ai: 'assistant',
  assistant: 'assistant',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
}

/**
 * A message as LangChain writes it: plain (`{type, content}` or `{role, content}`), with its `data`, or
 * serialized with its constructor (`{lc, id: […, "HumanMessage"], kwargs}`).
 *
 * @returns undefined for messages of tools and systems, and for those without text.
 */
export function messageOf(given: unknown): ThreadMessage | undefined {
  const outer = asObject(given)
  const fields: Fields = { ...outer, ...asObject(outer['data']), ...asObject(outer['kwargs']) }
  const kinds = [asList(outer['id']).at(-1), outer['type'], fields['role'], fields['type']]
  const role = kinds.map(kind => (typeof kind === 'string' ? roles[kind] : undefined)).find(Boolean)
  const content = contentText(fields['content'])
  if (role === undefined || content === '') return undefined
  return { id: asText(fields['id']), role, name: asText(fields['name']), content }
}

/** Returns a text, or the text blocks of a list. */
export const contentText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : asList(content)
        .map(block => (typeof block === 'string' ? block : (asText(asObject(block)['text']) ?? '')))
        .filter(text => text !== '')
        .join('\n')

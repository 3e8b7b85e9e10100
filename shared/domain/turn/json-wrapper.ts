/** Members that hold the user's words where a program sends its whole state as JSON. */
const wordsMembers = [
  'question',
  'query',
  'user_query',
  'userQuery',
  'user_message',
  'userMessage',
  'user_input',
  'userInput',
  'user_question',
  'prompt',
  'message',
  'input',
  'utterance',
  'text',
]

/** Members of JSON that a person pastes to ask about it: logs and error responses. */
const pastedMembers = ['error', 'errors', 'stack', 'level', 'status', 'code', 'statusCode']

const wrapperMax = 256 * 1024

/** The user's words in a text that is one JSON object; undefined where it is none, or was pasted. */
export function unwrapJson(text: string): string | undefined {
  if (!text.startsWith('{') || !text.endsWith('}') || text.length > wrapperMax) return undefined
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return undefined
  const members = new Map(Object.entries(value))
  if (pastedMembers.some(name => members.has(name))) return undefined
  const name = wordsMembers.find(name => isSentence(members.get(name)))
  return name === undefined ? undefined : (members.get(name) as string)
}

const isSentence = (value: unknown): boolean => typeof value === 'string' && /\S\s+\S/.test(value)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

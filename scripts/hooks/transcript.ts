import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** Bytes at the end of a transcript that hold the last answer. */
const tailBytes = 1024 * 1024

/**
 * Reads the last text of the assistant in the transcript of a session, as long as it follows the last prompt.
 * The lines are those of Gemini CLI (`type: gemini`), of Copilot and VS Code (`assistant.message` with `data`), of
 * Claude Code and of Cursor (`message.content`); others are passed over.
 *
 * @returns undefined where there is none.
 */
export function readLastAnswer(path: string): string | undefined {
  for (const line of readTail(path).split('\n').reverse()) {
    const said = readLine(line)
    if (said?.role === 'user') return undefined
    if (said !== undefined) return said.text
  }
  return undefined
}

type Part = { type?: string; text?: unknown; content?: unknown }
type Entry = {
  type?: string
  role?: string
  content?: unknown
  data?: { content?: unknown }
  message?: { role?: string; content?: unknown }
}

function readLine(line: string): { role: 'user' | 'assistant'; text: string } | undefined {
  const entry = parse(line)
  const kind = String(entry?.message?.role ?? entry?.role ?? entry?.type).split('.')[0]
  const text = textOf(entry?.message?.content ?? entry?.data?.content ?? entry?.content)
  if (text === '') return undefined
  if (kind === 'user') return { role: 'user', text }
  return kind === 'assistant' || kind === 'gemini' ? { role: 'assistant', text } : undefined
}

/** Results of tools, which stand in the user's turns, have no text of their own. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content.trim()
  if (!Array.isArray(content)) return ''
  return (content as Part[])
    .map(({ type = 'text', text }) => (type === 'text' && typeof text === 'string' ? text : ''))
    .join('\n')
    .trim()
}

function parse(line: string): Entry | undefined {
  try {
    return JSON.parse(line) as Entry
  } catch {
    return undefined
  }
}

function readTail(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(size, tailBytes))
      readSync(file, bytes, 0, bytes.length, size - bytes.length)
      return bytes.toString('utf8')
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}

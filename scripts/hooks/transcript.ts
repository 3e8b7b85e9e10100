import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { wordsOf } from './program-words.ts'

/** Bytes at the end of a transcript that hold the last answer. */
const tailBytes = 1024 * 1024

/**
 * Reads the last text of the assistant after a prompt, in the transcript of a session. The lines are those of Gemini
 * CLI (`type: gemini`), of Copilot and VS Code (`assistant.message` with `data`), of Claude Code and of Cursor
 * (`message.content`); others are passed over.
 *
 * @returns undefined where there is none; where the prompt is in none of the lines, the last text of all.
 */
export function readAnswer(path: string, prompt: string): string | undefined {
  const said = readTail(path)
    .split('\n')
    .flatMap(line => readLine(line) ?? [])
  const at = said.findLastIndex(({ role, text }) => role === 'user' && text === prompt.trim())
  const after = said.slice(at + 1)
  const next = at < 0 ? -1 : after.findIndex(({ role }) => role === 'user')
  return after.slice(0, next < 0 ? undefined : next).findLast(({ role }) => role === 'assistant')
    ?.text
}

/** Milliseconds without a change after which a transcript is whole, and the longest wait for it. */
const [quietMs, waitMs] = [1500, 10_000]

/** Waits for a program to write its transcript: Copilot CLI does it after the hook of its turn's end. */
export async function waitUntilWritten(path: string): Promise<void> {
  for (const end = Date.now() + waitMs; Date.now() < end; await delay(100)) {
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: 0 }
    if (Date.now() - mtimeMs > quietMs) return
  }
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
  const isModel = kind === 'assistant' || kind === 'gemini'
  if (!isModel && kind !== 'user') return undefined
  const words = wordsOf(text, { isModel })
  return words === '' ? undefined : { role: isModel ? 'assistant' : 'user', text: words }
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

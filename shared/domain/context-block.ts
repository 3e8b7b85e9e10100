import {
  absenceLine,
  closingSentence,
  closingTag,
  contextTagPattern,
  openingTag,
  questionSentence,
} from '#shared/domain/echoes.ts'
import { isSaidByProgram } from '#shared/domain/origin.ts'
import type { Memory } from '#shared/domain/memory.ts'

export type ContextMemory = Memory & {
  /** The part of the text to show, in UTF-16 units; all of it when left out. */
  passage?: { from: number; to: number } | undefined
  /** An older line of the block is about the same. */
  isLater?: boolean | undefined
  /** A newer memory says otherwise of the same thing. */
  isEarlier?: boolean | undefined
}

/** The block in place of one with memories, where the model is to know that there are none. */
export const absenceBlock = [openingTag, absenceLine, closingTag].join('\n')

export const afterQuestion = (context: string): string =>
  context === absenceBlock ? context : context + questionSentence

/**
 * Writes memories for a prompt: one line per memory, oldest event first, with its relative and absolute time and the
 * role, then one sentence of our own. A stored text can neither close the element nor open another, nor begin a line.
 *
 * @returns null when there are no memories.
 */
export function renderContextBlock(memories: readonly ContextMemory[], now: number): string | null {
  if (memories.length === 0) return null
  return blockOfLines(sortForBlock(memories).map(memory => renderMemoryLine(memory, now)))
}

export const blockOfLines = (lines: readonly string[]): string =>
  [openingTag, ...lines, closingTag, closingSentence].join('\n')

/** Replaces the line of a memory whose text is not there any more. */
export const tombstoneLine = (id: string, state: 'changed' | 'gone'): string =>
  `[memory ${id} ${state === 'gone' ? 'is gone' : 'has changed'}]`

/** Memories in the order of the lines of a block: oldest event first. */
export const sortForBlock = <Line extends Pick<Memory, 'id' | 'at'>>(
  memories: readonly Line[],
): Line[] => memories.toSorted((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1))

export function renderMemoryLine(memory: ContextMemory, now: number): string {
  const { at, role, speaker, author, tier, importance, isLater, isEarlier } = memory
  const place = isEarlier ? ', earlier' : isLater ? ', later' : ''
  const who =
    tier === 1
      ? escapeLine(speaker ?? author ?? fileOf(memory) ?? role).replaceAll(']', ')') +
        throughOf(memory)
      : `${tierNames[tier]}, importance ${importance}${throughOf(memory)}`
  return `[${formatRelativeTime(at, now)} · ${formatUtc(at)} · ${who}${place}] ${escapeLine(tellText(memory))}`
}

/** The file that a memory was read from, with its page. */
const fileOf = ({ role, metadata: { file, page } = {} }: Memory): string | undefined =>
  role === 'system' && file !== undefined
    ? `${file}${page === undefined ? '' : `, page ${page}`}`
    : undefined

/** What else wrote words with the role of a person, or what a reflection was made of. */
const throughOf = ({ role, tier, metadata }: Memory): string =>
  ((role === 'user' || tier > 1) && isSaidByProgram(metadata)
    ? ' by way of a program, unconfirmed'
    : '') + (tier > 1 && metadata?.['made_of_untold'] === true ? ', of what was taken back' : '')

/** The text or the passage of a memory; `…` stands for what is left out. */
export function tellText({ text, passage }: Pick<ContextMemory, 'text' | 'passage'>): string {
  if (!passage) return text
  const { from, to } = passage
  return `${from > 0 ? '… ' : ''}${text.slice(from, to).trim()}${to < text.length ? ' …' : ''}`
}

const tierNames = { 2: 'reflection', 3: 'high-level reflection' }

/**
 * Writes a text as one line, without control characters and our tags. Line breaks become one ` ⏎ `; the indentation of
 * the next line stays, as code needs it.
 */
function escapeLine(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  const printable = text.replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/g, ' ')
  return foldLines(escapeTags(printable))
}

function escapeTags(text: string): string {
  if (!contextTagPattern.test(text)) return text
  let escaped = ''
  let from = 0
  for (const { indices } of text.matchAll(new RegExp(contextTagPattern, 'dgi'))) {
    const [start, end] = indices!.groups!.opening!
    escaped += `${text.slice(from, start)}&lt;`
    from = end
  }
  return escaped + text.slice(from)
}

/** A line break with the blank lines after it; the group is the indentation of the next line. */
const lineBreakPattern =
  /[\n\r\u2028\u2029\u0085](?:[\s\u0085]*[\n\r\u2028\u2029\u0085])?([^\S\n\r\u2028\u2029]*)/

function foldLines(text: string): string {
  // Lines and indentations in turn.
  const parts = text.split(lineBreakPattern)
  const last = parts.length - 1
  return parts
    .map((part, index) => (index === last ? part : index % 2 === 0 ? part.trimEnd() : ` ⏎ ${part}`))
    .join('')
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365.25 * 24 * 3600],
  ['month', 30.44 * 24 * 3600],
  ['week', 7 * 24 * 3600],
  ['day', 24 * 3600],
  ['hour', 3600],
  ['minute', 60],
]

function formatRelativeTime(at: number, now: number): string {
  const seconds = (at - now) / 1000
  const unit = units.find(([, size]) => Math.abs(seconds) >= size)
  return unit ? relative.format(Math.trunc(seconds / unit[1]), unit[0]) : 'just now'
}

const formatUtc = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`

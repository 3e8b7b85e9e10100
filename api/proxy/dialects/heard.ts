import type { Reply } from '#api/proxy/dialects/dialect.ts'
import { textOf } from '#shared/domain/turn-content.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'

/** How much text of one answer is kept, in UTF-16 units; about half a million words. */
export const heardMax = 2 * 1024 * 1024

/** What was heard of an answer so far; the families write it, `end` makes the reply of it. */
export type Heard = {
  /** The next words. Words that follow each other directly are one text. */
  say(words: unknown): void
  /** A part that is no text: a line break, and its placeholder when it has one. */
  show(part: unknown): void
  /** The last numbers count; undefined leaves what was counted before. */
  count(tokens: { input?: number | undefined; output?: number | undefined }): void
  /** The answer came to its proper end. */
  complete(): void
  /** The provider said that it failed, so that nothing of it counts. */
  fail(): void
  /** Something was too long to be read. */
  cut(): void
  /** No more text is kept: what comes now matters for how the answer ends. */
  isFull(): boolean
  end(): Reply
}

export function createHeard(): Heard {
  const text = createText(heardMax)
  const counted: { input?: number; output?: number } = {}
  const is = { complete: false, failed: false, truncated: false }
  let parted = false

  const add = (words: string): void => {
    if (words === '') return
    if (parted && !text.isEmpty()) text.add('\n')
    parted = false
    text.add(words)
  }
  return {
    say(words) {
      if (typeof words === 'string') add(words)
    },
    show(part) {
      parted = true
      add(textOf([part]))
      parted = true
    },
    count({ input, output }) {
      if (input !== undefined) counted.input = input
      if (output !== undefined) counted.output = output
    },
    complete() {
      is.complete = true
    },
    fail() {
      is.failed = true
    },
    cut() {
      is.truncated = true
    },
    isFull: text.isCut,
    end: () => ({
      text: is.failed ? '' : wellFormedText(text.whole()),
      truncated: is.truncated || text.isCut(),
      complete: is.complete && !is.failed,
      ...(counted.input !== undefined && { inputTokens: counted.input }),
      ...(counted.output !== undefined && { outputTokens: counted.output }),
      failed: is.failed,
    }),
  }
}

/** Words come one by one; joined now and then, they take no more memory than the text they make. */
const piecesMax = 512

function createText(max: number): {
  add(words: string): void
  isEmpty(): boolean
  isCut(): boolean
  whole(): string
} {
  const blocks: string[] = []
  let pieces: string[] = []
  let length = 0
  let cut = false
  return {
    add(words) {
      if (length + words.length > max) cut = true
      const taken = words.slice(0, max - length)
      length += taken.length
      if (pieces.push(taken) < piecesMax) return
      blocks.push(pieces.join(''))
      pieces = []
    },
    isEmpty: () => length === 0,
    isCut: () => cut,
    whole: () => [...blocks, ...pieces].join(''),
  }
}

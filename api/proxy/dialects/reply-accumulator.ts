import type { Reply } from '#api/proxy/dialects/dialect.ts'
import { extractText } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** How much text of one answer is kept, in UTF-16 units; about half a million words. */
export const replyTextMax = 2 * 1024 * 1024

/** What was heard of an answer so far; the families write it, `end` makes the reply of it. */
export type ReplyAccumulator = {
  /** The next words. Words that follow each other directly are one text. */
  addText(words: unknown): void
  /** A part that is no text: a line break, and its placeholder when it has one. */
  addPart(part: unknown): void
  /** The last numbers count; undefined leaves what was counted before. */
  setUsage(tokens: { input?: number | undefined; output?: number | undefined }): void
  /** The answer came to its proper end. */
  markComplete(): void
  /** The provider said that it failed, so that nothing of it counts. */
  markFailed(): void
  /** Something was too long to be read. */
  markTruncated(): void
  /** No more text is kept: what comes now matters for how the answer ends. */
  isFull(): boolean
  end(): Reply
}

export function createReplyAccumulator(): ReplyAccumulator {
  const text = createTextBuffer(replyTextMax)
  const usage: { input?: number; output?: number } = {}
  const flags = { complete: false, failed: false, truncated: false }
  let needsLineBreak = false

  const add = (addition: string): void => {
    if (addition === '') return
    if (needsLineBreak && !text.isEmpty()) text.add('\n')
    needsLineBreak = false
    text.add(addition)
  }
  return {
    addText(addition) {
      if (typeof addition === 'string') add(addition)
    },
    addPart(part) {
      needsLineBreak = true
      add(extractText([part]))
      needsLineBreak = true
    },
    setUsage({ input, output }) {
      if (input !== undefined) usage.input = input
      if (output !== undefined) usage.output = output
    },
    markComplete() {
      flags.complete = true
    },
    markFailed() {
      flags.failed = true
    },
    markTruncated() {
      flags.truncated = true
    },
    isFull: text.isCut,
    end: () => ({
      text: flags.failed ? '' : sanitizeText(text.whole()),
      truncated: flags.truncated || text.isCut(),
      complete: flags.complete && !flags.failed,
      ...(usage.input !== undefined && { inputTokens: usage.input }),
      ...(usage.output !== undefined && { outputTokens: usage.output }),
      failed: flags.failed,
    }),
  }
}

/** Words come one by one; joined now and then, they take no more memory than the text they make. */
const chunksMax = 512

function createTextBuffer(max: number): {
  add(words: string): void
  isEmpty(): boolean
  isCut(): boolean
  whole(): string
} {
  const blocks: string[] = []
  let chunks: string[] = []
  let length = 0
  let truncated = false
  return {
    add(words) {
      if (length + words.length > max) truncated = true
      const taken = words.slice(0, max - length)
      length += taken.length
      if (chunks.push(taken) < chunksMax) return
      blocks.push(chunks.join(''))
      chunks = []
    },
    isEmpty: () => length === 0,
    isCut: () => truncated,
    whole: () => [...blocks, ...chunks].join(''),
  }
}

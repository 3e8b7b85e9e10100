import type { Reply } from '#api/proxy/dialects/dialect.ts'
import { extractText } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** Longest reply text that is stored, in UTF-16 units; about half a million words. */
export const replyTextMax = 2 * 1024 * 1024

/** Collects a reply while its response is parsed. */
export type ReplyAccumulator = {
  /** Appends to the text, without a separator; anything but a string is ignored. */
  addText(text: unknown): void
  /** A part that is no text: a line break, and its placeholder where its type has one. */
  addPart(part: unknown): void
  /** Later counts replace earlier ones; undefined changes nothing. */
  setUsage(tokens: { input?: number | undefined; output?: number | undefined }): void
  /** The provider marked the end of the response. */
  markComplete(): void
  /** The provider reported an error: the text is dropped. */
  markFailed(): void
  /** A part was too long to be parsed. */
  markTruncated(): void
  /** The model calls a tool of the client. */
  markStep(): void
  /** Whether there is no text yet. */
  isEmpty(): boolean
  /** Whether there is no text since the last part. */
  isPartEmpty(): boolean
  /** Whether the text limit is reached. */
  isFull(): boolean
  end(): Reply
}

export function createReplyAccumulator(): ReplyAccumulator {
  const text = createTextBuffer(replyTextMax)
  const usage: { input?: number; output?: number } = {}
  const flags = { complete: false, failed: false, truncated: false, step: false }
  let needsLineBreak = false

  const append = (addition: string): void => {
    if (addition === '') return
    if (needsLineBreak && !text.isEmpty()) text.append('\n')
    needsLineBreak = false
    text.append(addition)
  }
  return {
    addText(addition) {
      if (typeof addition === 'string') append(addition)
    },
    addPart(part) {
      needsLineBreak = true
      append(extractText([part]))
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
    markStep() {
      flags.step = true
    },
    isEmpty: text.isEmpty,
    isPartEmpty: () => needsLineBreak || text.isEmpty(),
    isFull: text.isTruncated,
    end: () => ({
      text: flags.failed ? '' : sanitizeText(text.toString()),
      truncated: flags.truncated || text.isTruncated(),
      complete: flags.complete && !flags.failed,
      ...(usage.input !== undefined && { inputTokens: usage.input }),
      ...(usage.output !== undefined && { outputTokens: usage.output }),
      failed: flags.failed,
      ...(flags.step && { isStep: true }),
    }),
  }
}

/** Chunks are a word each; joined at this number, they take little more memory than their text. */
const chunksMax = 512

function createTextBuffer(max: number): {
  append(chunk: string): void
  isEmpty(): boolean
  isTruncated(): boolean
  toString(): string
} {
  const blocks: string[] = []
  let chunks: string[] = []
  let length = 0
  let truncated = false
  return {
    append(chunk) {
      if (length + chunk.length > max) truncated = true
      const taken = chunk.slice(0, max - length)
      length += taken.length
      if (chunks.push(taken) < chunksMax) return
      blocks.push(chunks.join(''))
      chunks = []
    },
    isEmpty: () => length === 0,
    isTruncated: () => truncated,
    toString: () => [...blocks, ...chunks].join(''),
  }
}

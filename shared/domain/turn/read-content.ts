import { removeContextBlocks } from '#shared/domain/context-block.ts'
import type { ContentPart } from '#shared/domain/message-content.ts'
import { readText, type LeftOutPiece } from '#shared/domain/turn/read-text.ts'

/** What a message says. */
export type ContentReading = {
  /** What was said: words, code and placeholders of media, part by part on lines of their own. */
  words: string
  leftOut: readonly LeftOutPiece[]
}

/** Reads the parts of one message, without echoes of our own block and the marks of known programs. */
export function readContent(parts: readonly ContentPart[], isModel: boolean): ContentReading {
  const sent = withoutEchoes(parts)
  const messageHolds = (part: string): boolean => sent.some(({ text }) => text.includes(part))
  const readings = sent.map(({ text, isText }) =>
    isText ? readText({ text, isModel, messageHolds }) : { words: text, leftOut: [] },
  )
  return {
    words: joinParts(readings.map(({ words }) => words)),
    leftOut: readings.flatMap(({ leftOut }) => leftOut),
  }
}

/** The parts of one message as they were sent, on lines of their own; without echoes of our own block. */
export const sentContent = (parts: readonly ContentPart[]): string =>
  joinParts(withoutEchoes(parts).map(({ text }) => text))

const withoutEchoes = (parts: readonly ContentPart[]): ContentPart[] =>
  parts.map(({ text, isText }) => ({ text: removeContextBlocks(text), isText }))

const joinParts = (texts: readonly string[]): string => texts.filter(text => text !== '').join('\n')

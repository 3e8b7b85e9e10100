import { removeContextBlocks } from '#shared/domain/context-block.ts'
import type { ContentPart } from '#shared/domain/message-content.ts'
import type { HarnessReason } from '#shared/domain/turn/harness-elements.ts'
import { readText, type TextReading } from '#shared/domain/turn/read-text.ts'

/** What a message says. */
export type ContentReading = {
  /** What was said: words, code and placeholders of media, part by part on lines of their own. */
  words: string
  leftOut: readonly HarnessReason[]
}

/** Reads the parts of one message, without echoes of our own block. */
export function readContent(parts: readonly ContentPart[], isModel: boolean): ContentReading {
  const texts = parts.map(({ text, isText }) => ({ text: removeContextBlocks(text), isText }))
  const read = ({ text, isText }: ContentPart, hasOtherWords: boolean): TextReading =>
    isText ? readText(text, { isModel, hasOtherWords }) : { words: text, question: '', leftOut: [] }
  const alone = texts.map(part => read(part, false))
  // An unknown element is harness where another part has the words.
  const withWords = alone.filter(({ question }) => isSpoken(question)).length
  const readings = alone.map((reading, index) => {
    const { text } = texts[index]!
    const isElement = text.trimStart().startsWith('<')
    return isElement && withWords > 0 && reading.words === text
      ? read(texts[index]!, true)
      : reading
  })
  return {
    words: readings
      .map(({ words }) => words)
      .filter(words => words !== '')
      .join('\n'),
    leftOut: readings.flatMap(({ leftOut }) => leftOut),
  }
}

const isSpoken = (question: string): boolean => {
  const spoken = question.trim()
  return spoken !== '' && !spoken.startsWith('<')
}

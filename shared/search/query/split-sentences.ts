import { wordsOf } from '#shared/search/languages/languages.ts'

/** Characters beyond which a sentence is cut between words: it is a list, or a text without sentence ends. */
const sentenceLengthMax = 320

/**
 * Ends of sentences: line breaks, the full stops of scripts without spaces and of Devanagari, and other marks before a
 * space. A mark in "3.5", "v1.2" or "example.com" ends nothing.
 */
const sentenceEnds =
  /[。！？｡]+[」』”"')）]*|[।॥۔؟]+["'”’)»]*|(?<![.!?…;])[.!?…;]+["'”’)\]»]*(?=\s|$)|\s[-–—]\s(?=\p{Ll}|\p{Lu})|\n+|(?<=\s)(?=[¿¡])/gu

/** What stands before a full stop that ends nothing: a letter, a number, an abbreviation. */
const abbreviations = new RegExp(
  `(?:^|[\\s(])(?:\\p{L}|\\d{1,2}|${wordsOf('abbreviations').join('|').replaceAll('.', '\\.')})$`,
  'iu',
)

/** Splits a text in any script into sentences, trimmed, in order. Linear in its length. A quoted sentence keeps its marks. */
export function splitSentences(text: string): string[] {
  const sentences: string[] = []
  let start = 0
  for (const { 0: mark, index } of text.matchAll(sentenceEnds)) {
    if (mark.startsWith('.') && mark.length === 1) {
      if (abbreviations.test(text.slice(Math.max(start, index - 8), index))) continue
    }
    addSentence(sentences, text.slice(start, index + mark.length))
    start = index + mark.length
  }
  addSentence(sentences, text.slice(start))
  return sentences
}

function addSentence(sentences: string[], text: string): void {
  let rest = text.trim()
  while (rest.length > sentenceLengthMax) {
    const cut = lastSpaceBefore(rest, sentenceLengthMax)
    sentences.push(rest.slice(0, cut).trim())
    rest = rest.slice(cut).trim()
  }
  if (/[\p{L}\p{N}]/u.test(rest)) sentences.push(rest)
}

/** Returns the last comma or space of the first `length` characters; their end when they have none. */
function lastSpaceBefore(text: string, length: number): number {
  const comma = Math.max(text.lastIndexOf('、', length), text.lastIndexOf('，', length))
  const space = Math.max(text.lastIndexOf(' ', length), comma < 0 ? -1 : comma + 1)
  return space > length / 2 ? space : length
}

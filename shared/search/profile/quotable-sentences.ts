import { splitSentences } from '#shared/search/query/split-sentences.ts'

/** A message that gives a text to work on: what it says is not said by the person. */
const givenText =
  /^[\p{P}\s]{0,5}(?:please |can you |could you |bitte |por favor |per favore )?(?:translate|proofread|paraphrase|rephrase|rewrite|summari[sz]e|correct|fix the grammar|übersetze?|korrigiere?|traduis|traduisez|corrige|traduce|traduzca|resume|traduci|correggi|traduza|traduz|vertaal|corrigeer)(?![\p{L}])/iu

const fence = /^\s{0,3}(?:```|~~~)/
/** Quoted text, code, and rows of tables. */
const notProse = /^(?:>|\||\t| {4})/
const bullet = /^(?:[-*•–—]|\d{1,2}[.)])\s+/

/**
 * The sentences in which a person may say something of themselves, each a part of the text as it was
 * written: without code, quoted lines, bullets, and texts that are given to be worked on.
 */
export function quotableSentences(text: string): string[] {
  if (givenText.test(text.slice(0, 200))) return []
  const sentences: string[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (fence.test(line)) isCode = !isCode
    else if (!isCode && !notProse.test(line)) {
      for (const sentence of splitSentences(line)) sentences.push(sentence.replace(bullet, ''))
    }
  }
  return sentences
}

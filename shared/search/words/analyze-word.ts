import { foldText, nonLatinTerms, latinRoot } from '#shared/search/words/writing-systems.ts'
import { stemOf } from '#shared/search/words/stem.ts'
import {
  englishOnlyStopWords,
  foreignStopWords,
  stopWords,
} from '#shared/search/words/stop-words.ts'

/** The terms of a run of characters without white space. */
export type WordAnalysis = {
  readonly terms: readonly string[]
  /** Terms to add when the whole text is in another language than English. */
  readonly foreignRoots: readonly string[]
  /** -1 for function words of English, 1 for those of other languages. */
  readonly foreignScore: number
}

type AnalysisDraft = { terms: string[]; foreignRoots: string[]; foreignScore: number }

/** Characters of a word that are indexed; longer words are machine output. */
const wordLengthMax = 64

const wordCharacters = /[\p{L}\p{N}\p{M}]+/gu
const edgePunctuation = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}\p{M}]+$/gu
const programmingLanguage = /^[^\p{L}\p{N}]*([a-z](?:\+\+|#))[^\p{L}\p{N}]*$/iu
const contraction = /^([\p{L}\p{M}]+)'(?:s|t|ll|re|ve|d|m)$/iu
/** Elided French and Italian articles and pronouns before the next word. */
const elision = /^(?:l|qu|j|c|n|dell|nell|sull|all|un)'(?=\p{L}{2})/iu
const numberPattern = /^\d+(?:[.,:]\d+)*$/
const thousandsPattern = /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/
const identifierPattern = /^[\p{L}\p{N}\p{M}]+(?:[._@:+#=&?%~/-]{1,3}[\p{L}\p{N}\p{M}]+)+$/u

/** Analyzes a run of characters without white space; punctuation alone has no terms. */
export function analyzeWord(characters: string): WordAnalysis {
  const text = characters.normalize('NFKC').replace(/[’‘ʼ`´]/g, "'")
  const language = programmingLanguage.exec(text)?.[1]
  if (language) return { terms: [language.toLowerCase()], foreignRoots: [], foreignScore: 0 }

  const draft: AnalysisDraft = {
    terms: [],
    foreignRoots: [],
    foreignScore: /^[¿¡]/.test(text) ? 1 : 0,
  }
  addTerms(text.replace(edgePunctuation, ''), draft)
  return draft
}

function addTerms(text: string, draft: AnalysisDraft) {
  if (numberPattern.test(text)) {
    draft.terms.push(thousandsPattern.test(text) ? text.replaceAll(',', '') : text)
    return
  }
  const head = contraction.exec(text)?.[1]
  if (head) {
    const joined = foldText(text.replace("'", ''))
    if (!stopWords.has(joined)) addWord(head, draft)
    else if (englishOnlyStopWords.has(joined)) draft.foreignScore -= 1
    return
  }
  const elided = elision.exec(text)
  if (elided) {
    draft.foreignScore += 1
    addTerms(text.slice(elided[0].length), draft)
    return
  }
  const words = text.match(wordCharacters) ?? []
  for (const word of words) addWord(word, draft)
  if (words.length > 1) addIdentifier(text, words, draft)
}

/** Adds addresses, versions and snake_case as a whole, and "follow-up" as "followup". */
function addIdentifier(text: string, words: readonly string[], draft: AnalysisDraft) {
  if (text.length > wordLengthMax || !identifierPattern.test(text)) return
  if (/[\d_@.:#]/.test(text)) draft.terms.push(foldText(text))
  else if (words.length === 2 && /^[^-]+-[^-]+$/.test(text))
    draft.terms.push(stemOf(foldText(words.join(''))))
}

function addWord(word: string, draft: AnalysisDraft) {
  const folded = foldText(word.slice(0, wordLengthMax))
  if (folded === '') return
  if (englishOnlyStopWords.has(folded)) draft.foreignScore -= 1
  else if (foreignStopWords.has(folded)) draft.foreignScore += 1
  if (stopWords.has(folded) && !isAcronym(word)) return
  // A single letter is a term only in upper case: vitamin C, plan B.
  if (/^[a-z]$/.test(word) || word === 'I' || word === 'A') return

  const foreign = nonLatinTerms(folded)
  if (foreign) {
    draft.terms.push(...foreign)
    return
  }
  draft.terms.push(numerals.get(folded) ?? stemOf(folded))
  if (!foreignStopWords.has(folded) && /^[a-z]+$/.test(folded))
    draft.foreignRoots.push(...latinRoot(folded))
  for (const part of splitMixedWord(word)) draft.terms.push(stemOf(part))
}

/** Whether a word is an acronym that is spelt like a stop word. */
function isAcronym(word: string): boolean {
  return word === 'IT' || word === 'US' || word === 'WHO'
}

/** Returns the words of camelCase, and the letters and digits of 10km, B12, 3rd. */
function splitMixedWord(word: string): string[] {
  const mixed = /^(?:(\d+)(\p{L}+)|(\p{L}+)(\d+))$/u.exec(word)
  if (mixed)
    return mixed
      .slice(1)
      .flatMap(part => (part && !/^(?:\p{L}|st|nd|rd|th)$/u.test(part) ? [foldText(part)] : []))
  if (!/\p{Ll}\p{Lu}|\p{Lu}{2}\p{Ll}/u.test(word)) return []
  return word
    .replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, ' ')
    .split(' ')
    .map(foldText)
    .filter(part => part.length > 1 && !stopWords.has(part))
}

const numerals = new Map(
  `two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 eleven:11 twelve:12 thirteen:13
fourteen:14 fifteen:15 sixteen:16 seventeen:17 eighteen:18 nineteen:19 twenty:20 thirty:30 forty:40
fifty:50 sixty:60 seventy:70 eighty:80 ninety:90 hundred:100 thousand:1000`
    .split(/\s+/)
    .map(pair => pair.split(':') as [string, string]),
)

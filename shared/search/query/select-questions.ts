import { readQuestion } from '#shared/domain/turn/question.ts'
import { alternativesOf } from '#shared/search/languages/languages.ts'
import { namedSubjects } from '#shared/search/query/named-subjects.ts'
import { isAsking, isRequest, isSmallTalk } from '#shared/search/query/sentence-kinds.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'

/** A part of a message that is searched for by itself. */
export type Question = {
  text: string
  /**
   * `whole`: the message, when it is short; `asking`: a sentence that asks; `statement`: one of the
   * last sentences that do not; `name`: a name in a sentence that is not searched for.
   */
  kind: 'whole' | 'asking' | 'statement' | 'name'
}

const askingMax = 4
/** Last sentences that are searched for although they do not ask. */
const lastSentences = 3
const namesMax = 4
/** Length and sentences beyond which a message is not searched for as a whole. */
const wholeLengthMax = 320
const wholeSentencesMax = 2

/** Characters from the end of a message that are read. */
const messageLengthMax = 16_000

/**
 * Selects the parts of a message to search for, the last one first: sentences that ask, the last ones, and names in the
 * others. A message of one sentence is searched for as it is.
 *
 * @returns empty when the message only greets, thanks or says in which form to answer
 */
export function selectQuestions(message: string): Question[] {
  const text = readQuestion(unwrapJson(message)).slice(-messageLengthMax).trim()
  const labelled = new Set<string>()
  const sentences = splitSentences(text).map(sentence => {
    const rest = stripLabel(sentence)
    if (rest !== sentence) labelled.add(rest)
    return rest
  })
  if (sentences.length === 0) return text === '' ? [] : [{ text, kind: 'whole' }]
  // "Write a short report about Kestrel" is no instruction about the form alone.
  const asksOfName = (sentence: string) => isRequest(sentence) && namedSubjects(sentence).length > 0
  const telling = sentences.filter(one => !isSmallTalk(one) || asksOfName(one))
  if (telling.length === 0) return []
  if (telling.length === 1) return [{ text: telling[0]!, kind: 'whole' }]

  const asking = telling.filter(one => labelled.has(one) || isAsking(one)).slice(-askingMax)
  const statements = telling.slice(-lastSentences).filter(sentence => !asking.includes(sentence))
  const chosen = new Set([...asking, ...statements])
  const others = telling.filter(sentence => !chosen.has(sentence))
  const whole = telling.join('\n')
  const questions: Question[] = [
    ...asking.toReversed().map((text): Question => ({ text, kind: 'asking' })),
    ...statements.toReversed().map((text): Question => ({ text, kind: 'statement' })),
    ...properNames(others).map((text): Question => ({ text, kind: 'name' })),
  ]
  if (telling.length <= wholeSentencesMax && whole.length <= wholeLengthMax)
    questions.push({ text: whole, kind: 'whole' })
  return questions
}

/** Labels that templates put before a question. */
const label = new RegExp(`^(?:${alternativesOf('questionLabels')})\\s?[:：]\\s*`, 'iu')

const stripLabel = (sentence: string): string => sentence.replace(label, '') || sentence

/** Returns capitalised words that do not begin a sentence, the last ones first. */
function properNames(sentences: readonly string[]): string[] {
  const names = new Set<string>()
  for (const sentence of sentences.toReversed()) {
    for (const [name] of sentence.matchAll(/(?<=[\p{L}\d,’']\s)\p{Lu}[\p{Ll}\p{M}]{2,}/gu)) {
      names.add(name)
      if (names.size >= namesMax) return [...names]
    }
  }
  return [...names]
}

/** Length beyond which a JSON text is data, not a wrapped question. */
const jsonLengthMax = 16_000
const stringsMax = 64
const jsonDepthMax = 16

/** Names of fields that do not hold what is asked. */
const settingNames =
  /^(?:id|role|type|model|format|lang|language|locale|version|session|timestamp|date|mode|tone|style|system|instructions?|user_?id|source|temperature)$/i

/** Replaces a JSON value in a text, alone or among other words, by its strings, each on a line of its own. */
function unwrapJson(text: string): string {
  const start = text.search(/[{[]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  if (start < 0 || end <= start || end - start > jsonLengthMax) return text
  const value = parseJson(text.slice(start, end + 1))
  if (typeof value !== 'object' || value === null) return text
  const strings: string[] = []
  collectStrings(value, strings)
  return [text.slice(0, start), ...strings, text.slice(end + 1)]
    .map(part => part.replaceAll(/```\w*/g, ''))
    .filter(part => part.trim() !== '')
    .join('\n')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Collects the strings of several words, or in scripts without spaces, that are not settings; in order. */
function collectStrings(value: object, strings: string[], depth = 0): void {
  for (const [name, item] of Object.entries(value)) {
    if (strings.length >= stringsMax || depth >= jsonDepthMax) return
    if (typeof item === 'object' && item !== null) collectStrings(item, strings, depth + 1)
    else if (typeof item === 'string' && !settingNames.test(name)) {
      if (/\s|[^\p{ASCII}]/u.test(item.trim())) strings.push(item)
    }
  }
}

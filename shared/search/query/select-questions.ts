import { readQuestion } from '#shared/domain/turn/question.ts'
import { isAsking } from '#shared/search/query/asking-words.ts'
import { namedSubjects } from '#shared/search/query/named-subjects.ts'
import { isSmallTalk } from '#shared/search/query/small-talk.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { isRequest } from '#shared/search/query/task-words.ts'
import { unwrapJson } from '#shared/search/query/unwrap-json.ts'

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
/** The sentences before the end that are searched for although they do not ask. */
const lastSentences = 3
const namesMax = 4
/** A longer message is a text of which the single sentences are searched for. */
const wholeLengthMax = 320
const wholeSentencesMax = 2

/** Characters from the end of a message that are read, without what programs have put around them. */
const messageLengthMax = 16_000

/**
 * The parts of a message to search for, the last one first: sentences that ask, the last ones, and
 * names in the others, without greetings and instructions about the form of the answer. A message
 * of one sentence is searched for as it is.
 *
 * @returns empty when the message only greets, thanks or gives instructions about the form.
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
const label =
  /^(?:the )?(?:(?:user|current|new|final|original|my|last|follow-?up) )?(?:question|query|message|prompt|input|request|user|human|q|frage|nutzerfrage|anfrage|pregunta|consulta|domanda|pergunta|mensagem|requete|vraag|вопрос|запрос|سؤال|السؤال|प्रश्न|सवाल|问题|用户问题|提问|質問|질문)\s?[:：]\s*/iu

const stripLabel = (sentence: string): string => sentence.replace(label, '') || sentence

/** Capitalised words that do not begin a sentence, the last ones first. */
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

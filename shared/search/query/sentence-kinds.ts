import {
  alternativesOf,
  patternOf,
  phrasesOf,
  wordsOf,
} from '#shared/search/languages/languages.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

const foldedWords = (words: readonly string[]): ReadonlySet<string> => new Set(words.map(foldText))

/** Characters of a sentence that are read. */
const lengthMax = 400
const fold = (sentence: string): string => foldText(sentence.slice(0, lengthMax))

const askingWords = foldedWords(wordsOf('askingWords'))
const askingParts = patternOf('askingParts')

/** Whether a sentence ends with a question mark; Greek has the sign of our semicolon. */
const endsWithQuestionMark = (sentence: string): boolean => {
  const ending = sentence.slice(-6)
  return /[?？؟][\p{P}\s]{0,5}$/u.test(ending) || /\p{sc=Grek}.*;\s*$/u.test(ending)
}

/** Whether a sentence asks for something. */
export function isAsking(sentence: string): boolean {
  if (endsWithQuestionMark(sentence)) return true
  const text = foldText(sentence)
  const [first = ''] = text.replace(/^[\p{P}\p{S}\s]+/u, '').split(/[\s,.:;!?'’]/u, 1)
  return askingWords.has(first) || askingParts.test(sentence)
}

const politeWords = foldedWords(wordsOf('politeWords'))
const politePhrases = new RegExp(`(?:${alternativesOf('politePhrases')}|[\\p{P}\\p{S}\\s])+`, 'gu')
const formVerbs = patternOf('formVerbs')
const formNouns = patternOf('formNouns')
const tellingBeginning = new RegExp(`^(?:${alternativesOf('tellingSubjects')})[\\s'’]`, 'u')
/** A role that is given to the model: "you are a helpful assistant". */
const modelRole = new RegExp(
  [
    `^(?:${alternativesOf('modelSubjects', ({ spaces }) => spaces !== false)})[\\s\\P{L}].*?(?:${alternativesOf('modelRoles')})`,
    `^(?:${alternativesOf('modelSubjects', ({ spaces }) => spaces === false)}).{0,24}?(?:${alternativesOf('modelRoles', ({ spaces }) => spaces === false)})`,
  ].join('|'),
  'u',
)
const announcement = patternOf('announcements')

/**
 * Whether a sentence needs no memory: it only greets, thanks, agrees or announces a question, gives the model a role, or
 * says in which form to answer.
 */
export function isSmallTalk(sentence: string): boolean {
  const text = fold(sentence)
  if (modelRole.test(text) || isFormInstruction(text)) return true
  if (announcement.test(text) && !/[?？؟:：]/u.test(text)) return true
  const words = text.replace(politePhrases, ' ').match(/[\p{L}\p{N}\p{M}]+/gu)
  return !words || words.every(word => politeWords.has(word))
}

/** Whether a sentence is about the form of the answer. Sentences about oneself ("I use a short rope") are not. */
const isFormInstruction = (text: string): boolean =>
  text.length <= 200 &&
  !/[?？؟]/u.test(text) &&
  !tellingBeginning.test(text) &&
  formVerbs.test(text) &&
  formNouns.test(text)

const taskVerbs = foldedWords(wordsOf('taskVerbs'))
const requestVerbs = foldedWords(wordsOf('requestVerbs'))
const taskPatterns = patternOf('taskPatterns')
const personal = patternOf('personal')

/** Whether a text tells of, or asks about, a person's own things. */
export const isPersonal = (text: string): boolean => personal.test(fold(text))

/** Whether a sentence gives a task that needs no memory: something is to be made. */
export const isImpersonalTask = (sentence: string): boolean =>
  beginsWithVerb(sentence, [taskVerbs]) && !isPersonalTask(sentence)

/** Whether a sentence gives a task or asks for something to be done. */
export const isRequest = (sentence: string): boolean =>
  beginsWithVerb(sentence, [taskVerbs, requestVerbs])

/** Whether a sentence asks for anything that has nothing to do with the person who asks. */
export const isImpersonalRequest = (sentence: string): boolean =>
  isRequest(sentence) && !isPersonalTask(sentence)

const generalBeginnings = phrasesOf('generalRequests').map(words => `${words} `)

/** What an agent finds in the files before it, and words that ask what was said of it all the same. */
const workspaceParts = patternOf('workspaceParts')
const recalls = patternOf('recalls')

/** Whether a sentence asks what was said before, or for something of the person: what only memory could tell. */
export function asksMemory(sentence: string): boolean {
  if (questionKind(sentence) === 'self') return true
  const text = fold(sentence)
  return (
    isAsking(sentence) &&
    personal.test(text) &&
    !isImpersonalRequest(sentence) &&
    !generalBeginnings.some(words => text.startsWith(words)) &&
    (!workspaceParts.test(text) || recalls.test(text))
  )
}

const firstWord = /^[\p{P}\p{S}\s]{0,20}(?:please\s{1,9})?([^\s,.:;!?'’]{0,40})/u

function beginsWithVerb(sentence: string, verbs: readonly ReadonlySet<string>[]): boolean {
  const text = fold(sentence)
  const [, first = ''] = firstWord.exec(text) ?? []
  return verbs.some(list => list.has(first)) || taskPatterns.test(text)
}

/** Whether a task is about the person: "write me a letter" is for, not about the person. */
const isPersonalTask = (sentence: string): boolean =>
  personal.test(fold(sentence).replace(/^(?:\S+\s+)(?:me|mir|moi|nos)\s/u, ''))

const noteBeginnings = foldedWords(wordsOf('noteBeginnings'))
/** A label before its value, or the word "user". */
const profileNote = /^[^\s:]{1,30}(?: [^\s:]{1,30}){0,3}:\s|\buser\b/
/** The first word of a folded text, behind a negation. */
const noteBeginning = /^(?:no |ne |n')?([a-z]{2,20})(?![\p{L}\p{N}])/u

/** Whether a text is a note about a person without a pronoun: "Name: Ada", "Prefers dark mode", "Vive en Madrid". */
export function isProfileNote(text: string): boolean {
  const folded = fold(text)
  return profileNote.test(folded) || noteBeginnings.has(noteBeginning.exec(folded)?.[1] ?? '')
}

/** Questions that similarity alone does not answer, the first that matches counts. */
const questionKinds = [
  /** What is known about the person. */
  ['self', patternOf('asksSelf')],
  /** All about a named thing. */
  ['everything', patternOf('asksEverything')],
  /** How often, over conversations. */
  ['count', patternOf('asksCount')],
  /** What came first. */
  ['order', patternOf('asksOrder')],
  /** Advice, which depends on what the person likes. */
  ['preference', patternOf('asksPreference')],
] as const

export type QuestionKind = (typeof questionKinds)[number][0]

/** Characters of a sentence in which a kind is looked for. */
const kindLengthMax = 300

/** Returns the kind of a sentence; undefined for those that are answered by what is most similar. */
export function questionKind(sentence: string): QuestionKind | undefined {
  const text = foldText(sentence.slice(0, kindLengthMax))
  return questionKinds.find(([, pattern]) => pattern.test(text))?.[0]
}

const lists = patternOf('asksList')

/** Whether a text asks for a summary or an order of events, which many memories make up. */
export const asksList = (text: string): boolean =>
  lists.test(foldText(text.slice(0, kindLengthMax)))

const preferences = patternOf('preferences')

/** Whether a text states what a person likes or wants from now on. */
export const statesPreference = (text: string): boolean =>
  preferences.test(foldText(text.slice(0, kindLengthMax)))

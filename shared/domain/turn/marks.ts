// Relative, as in the files of this folder that it needs: the package of the hooks has them too.
import rows from './marks.json' with { type: 'json' }

type KnownMark = {
  program: string
  /** Public repositories with their files, or pages. */
  source: string
  /** The day on which the source was read, such as `2026-11-25`. */
  date: string
  /** The elements count only in a message that holds this text as well: people use their names too. */
  beside?: string
  /** Whose messages it stands in: the user's, when missing. */
  of?: 'model'
  /** Elements that are left out: what follows `<`, which is more than the name where others use the name. */
  elements?: string[]
  /** Elements around the user's own words: only their tags are left out. */
  around?: string[]
  /** The words of the user in an element that is left out otherwise: what follows `begin`, up to `end`. */
  passedOn?: { element: string; begin: string; end: string }
  /** What is left out from its first line to its last. */
  spans?: { name: string; begin: string; end: string }[]
  /** Messages that begin so. */
  texts?: KnownText[]
  asides?: AsideForm[]
  template?: Template
  request?: { words: string[]; pasted: string[] }
}

export type KnownText = {
  name: string
  /** How the message begins, without leading white space. */
  beginning: string
  /** Stands in its first line as well. */
  also?: string
  /** The user's words follow this text; a message without it stays. When missing, the whole message is left out. */
  wordsAfter?: string
  /** The beginning is the whole message. */
  isWhole?: true
}

/** Calls of a program for itself: titles, tags, follow-up questions, search queries, routing, quota and summaries. */
export type AsideForm = {
  /** Which text begins so: a part of a user's message, or of the system prompt. */
  of: 'user' | 'system'
  /** In lower case, white space as single spaces. */
  beginning: string
  /** Texts of which one also occurs in the first characters, where the beginning alone could be a person's. */
  also?: string[]
  /** Texts that a person's words begin with, though they begin so. */
  unless?: string
  /** The beginning is the whole text, and the reply may have one token. */
  isQuotaTest?: boolean
}

/** Names and labels of prompt templates that no program owns. They choose what is asked with, never what is stored. */
type Template = {
  /** Elements around quoted documents, and around the question itself; in kebab case. */
  quotedElements: string[]
  questionElements: string[]
  /** Labels at the beginning of a line, in lower case. */
  questionLabels: string[]
  contextLabels: string[]
  answerLabels: string[]
  /** Labels of a question that may follow other words on their line: no person writes them. */
  inlineLabels: string[]
  /** Beginnings of instructions to a model, in lower case. */
  instructions: string[]
}

/** The one table of names and marks of other programs. */
export const knownMarks = rows as readonly KnownMark[]

export const template = knownMarks.find(row => row.template)!.template!
export const request = knownMarks.find(row => row.request)!.request!

const nameOf = (element: string): string => /^[\w.:-]+/.exec(element)![0]

export const kebabCase = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll(/[_.:]/g, '-')
    .toLowerCase()

const elementsByName = new Map<string, { isAround: boolean; row: KnownMark; follows: string }[]>()
for (const row of knownMarks) {
  for (const kind of ['elements', 'around'] as const) {
    for (const follows of row[kind] ?? []) {
      const others = elementsByName.get(nameOf(follows)) ?? []
      elementsByName.set(nameOf(follows), [
        ...others,
        { isAround: kind === 'around', row, follows },
      ])
    }
  }
}

export type MarkedText = {
  text: string
  isModel: boolean
  /** Whether the message, in this part or another, holds a text. */
  messageHolds(text: string): boolean
}

const isOf = ({ of, beside }: KnownMark, { isModel, messageHolds }: MarkedText): boolean =>
  isModel === (of === 'model') && (beside === undefined || messageHolds(beside))

/** The row of an element that begins at `start`; undefined where no known program writes it so. */
export const findKnownElement = (from: MarkedText, rawName: string, start: number) =>
  elementsByName
    .get(rawName)
    ?.find(({ row, follows }) => isOf(row, from) && from.text.startsWith(follows, start + 1))

/** The form of a message that a program wrote as a whole, or put around words; of the user's or of the model's. */
export const findKnownText = (trimmed: string, isModel: boolean): KnownText | undefined =>
  (isModel ? modelTexts : userTexts).find(
    ({ beginning, also, isWhole }) =>
      (isWhole ? trimmed === beginning : trimmed.startsWith(beginning)) &&
      (also === undefined || trimmed.slice(0, 128).split('\n', 1)[0]!.includes(also)),
  )

const textsOf = (isModel: boolean): KnownText[] =>
  knownMarks.flatMap(({ of, texts = [] }) => ((of === 'model') === isModel ? texts : []))
const [userTexts, modelTexts] = [textsOf(false), textsOf(true)]

export const knownSpans = knownMarks.flatMap(({ spans = [] }) => spans)

export const knownPassages = knownMarks.flatMap(({ passedOn = [] }) => passedOn)

const namesOfUser = (kind: 'elements' | 'around'): string[] =>
  knownMarks.flatMap(row => (row.of === 'model' ? [] : (row[kind] ?? []))).map(nameOf)

const leftOutNames = new Set([
  ...template.quotedElements,
  ...namesOfUser('elements').map(kebabCase),
])
const wordsNames = new Set([...template.questionElements, ...namesOfUser('around').map(kebabCase)])

/** Whether an element of this name is asked with: `words`, `left-out`, or undefined where nothing is known of it. */
export const promptElementKind = (name: string): 'words' | 'left-out' | undefined =>
  wordsNames.has(name) ? 'words' : leftOutNames.has(name) ? 'left-out' : undefined

import {
  alternativesOf,
  boundaryLetters,
  languages,
  type Language,
  wholeWords,
} from '#shared/search/languages/languages.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/**
 * An attribute of a person that people note under a label, "Location: Berlin", and how it is asked for. Labels are
 * those of all languages, and the subjects of statements too: "I live in Berlin" states the home.
 */
type Attribute = {
  readonly name: string
  readonly labels: ReadonlySet<string>
  /** Questions that name no label: "where do I live". */
  readonly questions: RegExp
}

/** Characters of a question, and of a text with labels, that are read. */
const questionLengthMax = 300
const textLengthMax = 1_500
const labelWordsMax = 3

const fold = (text: string): string => foldText(text).replaceAll('’', "'")

/** The parts of the language files for each attribute; a part may be of several. */
const partsByAttribute = Map.groupBy(
  [...languages.values()].flatMap(({ attributes = {} }) =>
    Object.entries(attributes).flatMap(([names, part]) =>
      names.split(' ').map(name => ({ name, part })),
    ),
  ),
  ({ name }) => name,
)

const attributes: ReadonlyMap<string, Attribute> = new Map(
  [...partsByAttribute].map(([name, ofName]) => {
    const parts = ofName.map(({ part }) => part)
    const labels = parts.flatMap(part => part.labels ?? []).flatMap(line => line.split(', '))
    const questions = parts.flatMap(part => part.questions ?? []).map(wholeWords)
    return [
      name,
      {
        name,
        labels: new Set(labels.map(fold)),
        questions: new RegExp(questions.join('|') || '$^'),
      },
    ]
  }),
)

const attributesByLabel = Map.groupBy(
  [...attributes.values()].flatMap(attribute =>
    [...attribute.labels].map(label => ({ label, attribute })),
  ),
  ({ label }) => label,
)

/** Labels under which a name is noted, and the subjects of sentences that state it. */
export const nameLabels: ReadonlySet<string> = attributes.get('name')!.labels

/** What a question has before and after a label: "what is my … again", "wie viele … habe ich". */
const labelForms = [...languages.values()]
  .flatMap(({ labelForms = [] }) => labelForms)
  .map(({ before, after }) => ({
    before: before.startsWith('^')
      ? new RegExp(before, 'g')
      : new RegExp(`(?<![${boundaryLetters}0-9_])${before}`, 'g'),
    after: new RegExp(after),
  }))

/** What every question about an attribute has, in one pattern: most questions ask for none. */
const mayAsk = wordStartPattern([...languages.values()].flatMap(questionParts))

function questionParts({ attributes: parts = {}, labelForms: forms = [] }: Language): string[] {
  const questions = Object.values(parts).flatMap(({ questions = [] }) => questions)
  return [...questions, ...forms.map(({ before }) => before)]
}

/** One pattern of some that begin with a word, or with the text. */
function wordStartPattern(patterns: readonly string[]): RegExp {
  const [anchored = [], others = []] = [true, false].map(isAnchored =>
    patterns.filter(pattern => pattern.startsWith('^') === isAnchored),
  )
  return new RegExp([...anchored, `(?<![${boundaryLetters}0-9_])(?:${others.join('|')})`].join('|'))
}

/** Before a label in a question: "my current job". */
const adjectives = new RegExp(`^(?:${alternativesOf('labelAdjectives')}) `)

/** Returns the labels of what a question asks of the person who asks; undefined when it asks for no attribute. */
export function askedLabels(question: string): ReadonlySet<string> | undefined {
  const text = fold(question.slice(0, questionLengthMax)).trim()
  if (!mayAsk.test(text)) return undefined
  const asked = [
    ...[...attributes.values()].filter(({ questions }) => questions.test(text)),
    ...labelForms.flatMap(form => attributesAfter(text, form)),
  ]
  return asked.length > 0 ? new Set(asked.flatMap(({ labels }) => [...labels])) : undefined
}

function attributesAfter(
  text: string,
  { before, after }: { before: RegExp; after: RegExp },
): Attribute[] {
  return Array.from(text.matchAll(before)).flatMap(match => {
    const rest = text.slice(match.index + match[0].length).replace(adjectives, '')
    const label = leadingLabel(rest)
    if (label === undefined || !after.test(rest.slice(label.length))) return []
    return attributesByLabel.get(label)!.map(({ attribute }) => attribute)
  })
}

/** Returns the longest label that a text begins with. */
function leadingLabel(text: string): string | undefined {
  const ends = Array.from(text.slice(0, 80).matchAll(/(?<=[\p{L}\p{M}])(?![\p{L}\p{M}-])/gu))
  return ends
    .slice(0, labelWordsMax)
    .map(({ index }) => text.slice(0, index))
    .findLast(words => attributesByLabel.has(words))
}

/** A line with a label and a value: "Name: Ada", "- my job = nurse", "User's location: Berlin". */
const labelledLine = new RegExp(
  `(?<=^|\\n)[ \\t]{0,4}(?:[-*•] )?(?:${alternativesOf('labelPossessives')})?(\\p{L}[\\p{L}\\p{M} '-]{0,30}?) ?[:：=][ \\t]{0,3}(?=\\S)`,
  'gu',
)

/** The attributes of which a text is a note, by the label that it begins with. */
export function notedAttributes(text: string): string[] {
  const [[, label = ''] = []] = fold(text.slice(0, textLengthMax)).matchAll(labelledLine)
  return attributesByLabel.get(label)?.map(({ attribute }) => attribute.name) ?? []
}

/** Whether a text is a note with one of the labels before its value. */
export function hasLabel(text: string, labels: ReadonlySet<string>): boolean {
  for (const [, label = ''] of fold(text.slice(0, textLengthMax)).matchAll(labelledLine))
    if (labels.has(label)) return true
  return false
}

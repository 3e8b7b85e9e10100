import { attributes, type Attribute } from '#shared/search/query/attributes/attribute-table.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/** Characters of a question, and of a text with labels, that are read. */
const questionLengthMax = 300
const textLengthMax = 1_500
const labelWordsMax = 3

const fold = (text: string): string => foldText(text).replaceAll('’', "'")
const labelsOf = ({ labels }: Attribute): string[] => labels.split(', ').map(fold)

const attributesByLabel = new Map<string, Attribute[]>()
for (const attribute of attributes)
  for (const label of labelsOf(attribute))
    attributesByLabel.set(label, [...(attributesByLabel.get(label) ?? []), attribute])

/** Labels under which a name is noted, and the subjects of sentences that tell it. */
export const nameLabels: ReadonlySet<string> = new Set(labelsOf(attributes[0]!))

/** A question without one of these words asks nothing of the person who asks. */
const firstPersons: ReadonlySet<string> = new Set(
  `i im my me ich mein meine meinen meiner je j mon ma mes moi mi mis me vivo resido trabajo hago como soy tengo naci
cumplo vengo estoy hablo se conduzco estudio estudie puedo mio mia miei sono abito lavoro faccio ho meu minha eu sou moro
trabalho faco tenho nasci mijn ik я меня мои моя мое моего моем моеи мне`.split(/\s+/),
)

/** Letters of folded text in the languages of the table. */
const letters = 'a-zа-я'
const notLetters = new RegExp(`[^${letters}]+`)

/** Questions that name no label, one pattern for each attribute. */
const questionForms = attributes.map(
  ({ questions }) => new RegExp(`(?<![${letters}0-9_])(?:${questions})(?![${letters}0-9_])`),
)

/** What a question has before and after a label: "what is my … again", "wie viele … habe ich". */
const nounForms: readonly { before: RegExp; after: RegExp }[] = [
  {
    before:
      /\b(?:(?:what|who|when|where)(?:'?s| is| are| was)?|tell me|know|remember|remind me of|give me|names? of) (?:again )?my /g,
    after:
      /^(?:'s? (?:full |first )?names?)?(?: (?:again|is|are|called|named|now|please))*\s?(?:[?.!,;:]|$)/,
  },
  { before: /^my /g, after: /^(?:'s? names?)?\s?[?.!]?$/u },
  {
    before: /\b(?:do i have|have i got) (?:any |an? )?/g,
    after: /^\s?[?.!,]|^$/,
  },
  {
    before: /\b(?:how many|which|what) /g,
    after: /^ (?:do i have|have i got|do i own)\b/,
  },
  {
    before:
      /\b(?:(?:was|wie|wer|wann|wo) (?:ist|sind|war|lautet|lauten|heisst|heissen)|kennst du|weisst du|nenn(?:e|st)?(?: du)?(?: mir)?|sage?(?: mir)?) (?:noch |nochmal |noch mal |denn |eigentlich )?mein(?:e[nr]?)? /g,
    after: /^(?: (?:nochmal|noch mal|denn|noch|ist|sind|heisst|heissen))*\s?(?:[?.!,;:]|$)/,
  },
  { before: /\bhabe? ich (?:ein[a-z]{0,2} )?/g, after: /^\s?[?.!,]|^$/u },
  {
    before: /\b(?:wie viele|welche[nrs]?) /g,
    after: /^ habe? ich\b/,
  },
  {
    before:
      /\b(?:(?:cual|cuales|quien|quienes|cuando|donde) (?:es|esta|son|era)|como se llaman?|sabes|conoces|recuerdas|dime) mis? /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  {
    before: /\btengo (?:un[oa]?s? |algun[oa]?s? )?/g,
    after: /^\s?[?.!,]|^$/,
  },
  { before: /\b(?:cuant[oa]s|que) /g, after: /^ tengo\b/u },
  {
    before:
      /\b(?:(?:quel(?:le)?s?|qui|quand|ou) (?:est|sont)|connais-tu|connaissez-vous|rappelle-moi|donne-moi|dis-moi|comment s'appelle(?:nt)?) (?:deja )?(?:mon|ma|mes) /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  {
    before: /\b(?:c'est quoi|c'est quel(?:le)?|(?:tu )?(?:sais|connais)(?:-tu)?) (?:mon|ma|mes) /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  {
    before:
      /\b(?:(?:qual|dov|com)(?:'? ?e|'e)|dove (?:si trova|sono)|quando e|chi e|ricordi|dimmi) (?:il mio|la mia|i miei|le mie|mi[oa]) /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  { before: /\b(?:dov'e|dove si trova) /g, after: /^ mia\s?(?:[?.!,;:]|$)/ },
  {
    before:
      /\b(?:(?:qual|onde|quando|quem) (?:e|esta|fica)|sabes|sabe|lembras|lembra|diz-me|diga) (?:o meu|a minha|os meus|as minhas|meu|minha) /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  {
    before: /\b(?:(?:wat|waar|wie|wanneer) (?:is|zijn|was)|weet je|ken je) (?:mijn|m'n) /g,
    after: /^(?: (?:ook alweer|nog))?\s?(?:[?.!,;:]|$)/,
  },
  {
    before:
      /(?<![а-я])(?:как(?:ои|ая|ое)|каков[аоы]?|где|когда|кто|помнишь|знаешь|скажи|напомни)(?: у меня| мо[ияе]| мне)+ /g,
    after: /^\s?(?:[?.!,;:]|$)/,
  },
  {
    before: /\b(?:ai-je|j'ai) (?:des |une? |d')/g,
    after: /^\s?[?.!,]|^$/,
  },
  {
    before: /\b(?:combien d(?:e |')|quel(?:le)?s? )/g,
    after: /^ (?:est-ce que j'ai|ai-je)\b/,
  },
]
/** Before a label in a question: "my current job". */
const adjectives =
  /^(?:current|own|exact|present|new|aktuell[a-z]{0,2}|jetzig[a-z]{0,2}|genau[a-z]{0,2}) /

/** The labels of what a question asks of the person who asks; undefined when it asks for no attribute. */
export function askedLabels(question: string): ReadonlySet<string> | undefined {
  const text = fold(question.slice(0, questionLengthMax)).trim()
  if (!text.split(notLetters).some(word => firstPersons.has(word))) return undefined
  const asked = [
    ...attributes.filter((_, i) => questionForms[i]!.test(text)),
    ...nounForms.flatMap(form => attributesAfter(text, form)),
  ]
  return asked.length > 0 ? new Set(asked.flatMap(labelsOf)) : undefined
}

function attributesAfter(
  text: string,
  { before, after }: { before: RegExp; after: RegExp },
): Attribute[] {
  return Array.from(text.matchAll(before)).flatMap(match => {
    const rest = text.slice(match.index + match[0].length).replace(adjectives, '')
    const label = leadingLabel(rest)
    return label && after.test(rest.slice(label.length)) ? attributesByLabel.get(label)! : []
  })
}

/** The longest label that a text begins with. */
function leadingLabel(text: string): string | undefined {
  const ends = Array.from(text.slice(0, 80).matchAll(/(?<=[\p{L}\p{M}])(?![\p{L}\p{M}-])/gu))
  return ends
    .slice(0, labelWordsMax)
    .map(({ index }) => text.slice(0, index))
    .findLast(words => attributesByLabel.has(words))
}

/** A line with a label and a value: "Name: Ada", "- my job = nurse", "User's location: Berlin". */
const labelledLine =
  /(?<=^|\n)[ \t]{0,4}(?:[-*•] )?(?:(?:the )?user(?:'s)? (?!name ?[:：=])|my |mein(?:e[nr]?)? |mis? |mon |ma |mes |il mio |la mia |(?:[oa] )?(?:meu|minha) |mijn |мо[ияе] )?(\p{L}[\p{L}\p{M} '-]{0,30}?) ?[:：=][ \t]{0,3}(?=\S)/gu

/** Whether a text is a note with one of the labels before its value. */
export function hasLabel(text: string, labels: ReadonlySet<string>): boolean {
  for (const [, label = ''] of fold(text.slice(0, textLengthMax)).matchAll(labelledLine))
    if (labels.has(label)) return true
  return false
}

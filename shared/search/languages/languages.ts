import { readdirSync, readFileSync } from 'node:fs'
import type { ProfileKind } from '#shared/domain/profile-kinds.ts'

/** Lists of words: lines of words that are separated by spaces. */
type WordList =
  | 'stopWords'
  | 'ambiguousStopWords'
  | 'homographs'
  | 'abbreviations'
  | 'askingWords'
  | 'politeWords'
  | 'taskVerbs'
  | 'requestVerbs'
  | 'noteBeginnings'
  | 'genericWords'
  | 'timePrepositions'
  | 'dateOf'
  | 'rangeWords'
  | 'relativeTimeWords'
  | 'supposingBeginnings'
  | 'notNames'
  | 'leadingAdverbs'
  | 'ownWords'
  | 'subjectPronouns'
  | 'endingWords'
  | 'technicalNames'

/** Lists of phrases: lines of phrases that are separated by commas. */
type PhraseList = 'politeBeginnings' | 'valueEnds' | 'phatic' | 'generalRequests' | 'sensitive'

/** Lists of alternatives of a regular expression. */
type PatternList =
  | 'askingParts'
  | 'actionRequests'
  | 'questionLabels'
  | 'politePhrases'
  | 'formVerbs'
  | 'formNouns'
  | 'tellingSubjects'
  | 'modelSubjects'
  | 'modelRoles'
  | 'announcements'
  | 'taskPatterns'
  | 'personal'
  | 'asksSelf'
  | 'asksEverything'
  | 'asksCount'
  | 'asksOrder'
  | 'asksList'
  | 'asksPreference'
  | 'preferences'
  | 'asksNumber'
  | 'asksTime'
  | 'asksAssistant'
  | 'asksUser'
  | 'asksLatest'
  | 'asksFirst'
  | 'asksPast'
  | 'endsStatement'
  | 'workspaceParts'
  | 'recalls'
  | 'yesterday'
  | 'today'
  | 'labelAdjectives'
  | 'labelPossessives'
  | 'supposing'
  | 'givenTexts'
  | 'commonBeginnings'
  | 'articles'
  | 'kin'

/** A frame of sentences in which people say something of themselves. */
export type StatementFrame = {
  /** Words of which every such sentence has one, in lower case: others are not tried. */
  cues: string
  /**
   * A pattern of the sentence in lower case, from the beginning of a word on. `{x}` is the value, `{kin}` the subject,
   * one of the language's `kin`, `{people}` one of these that is not, `{end}` the end of a word; other names are its
   * `parts`.
   */
  pattern: string
  /** What a later statement replaces; `{subject}`, `{value}` and `{pair}` stand for what was found. */
  subject?: string
  /** The value, where the subject has all of what was found. */
  value?: string
  /** The value is a name: it begins with a capital letter, or all of the sentence is in lower case. */
  isName?: boolean
  /** The value has a number or the name of a month. */
  isDate?: boolean
  /** What no longer holds. */
  ends?: { kind: ProfileKind; subject: string }
}

/** What the rules know of one language, from `<code>.json`; README.md describes each list. */
export type Language = {
  /** Its English name. */
  language: string
  /** Patterns match whole words: those of Latin and Cyrillic letters. */
  boundaries?: boolean
  /** False in scripts that put no space between words. */
  spaces?: boolean
  /** Characters of words that say nothing of the subject, where words have no spaces. */
  functionCharacters?: string
  /** The names of each month, from January on. */
  months?: readonly string[]
  /** From Sunday on. */
  weekdays?: readonly string[]
  /** The first month, from 0, of each season of the northern hemisphere. */
  seasons?: Readonly<Record<string, number>>
  /** What people note of themselves, by attribute, or by several that share their words. */
  attributes?: Readonly<
    Record<string, { labels?: readonly string[]; questions?: readonly string[] }>
  >
  /** What a question has before and after a label: "what is my …", "wie viele … habe ich". */
  labelForms?: readonly { before: string; after: string }[]
  /** Parts of patterns of `statements`, by name. */
  parts?: Readonly<Record<string, string>>
  statements?: Readonly<Partial<Record<ProfileKind, readonly StatementFrame[]>>>
} & Partial<Record<WordList | PhraseList | PatternList, readonly string[]>>

const folder = new URL('./', import.meta.url)

/** All languages, by their codes. */
export const languages: ReadonlyMap<string, Language> = new Map(
  readdirSync(folder)
    .filter(name => name.endsWith('.json'))
    .toSorted()
    .map(name => [
      name.slice(0, -'.json'.length),
      JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Language,
    ]),
)

const itemsOf = (list: WordList | PhraseList, separator: string): string[] =>
  [...languages.values()].flatMap(of => (of[list] ?? []).flatMap(line => line.split(separator)))

/** The words of a list, of all languages. */
export const wordsOf = (list: WordList): string[] => itemsOf(list, ' ')

/** The phrases of a list, of all languages. */
export const phrasesOf = (list: PhraseList): string[] => itemsOf(list, ', ')

/** Letters of folded text in languages whose patterns match whole words. */
export const boundaryLetters = 'a-zа-яіїєґ'
const wordStart = `(?<![${boundaryLetters}0-9_])`
const wordEnd = `(?![${boundaryLetters}0-9_])`

/** A pattern that matches whole words, except at an anchored end. */
export const wholeWords = (pattern: string): string =>
  `${pattern.startsWith('^') ? '' : wordStart}(?:${pattern})${pattern.endsWith('$') ? '' : wordEnd}`

/** The alternatives of a list, as they are written, of the languages that a filter lets through. */
export const alternativesOf = (
  list: PatternList,
  isWanted: (language: Language) => boolean = () => true,
): string =>
  [...languages.values()]
    .filter(isWanted)
    .flatMap(of => of[list] ?? [])
    .join('|')

/**
 * One pattern of a list of all languages, for folded text, or with the flag `i` for text in lower and upper case. The ends
 * of words are looked for once for all alternatives: once for each took three times as long.
 */
export function patternOf(list: PatternList, flags = 'u'): RegExp {
  const [words = [], others = []] = [true, false].map(boundaries =>
    [...languages.values()]
      .filter(of => (of.boundaries ?? false) === boundaries)
      .flatMap(of => of[list] ?? []),
  )
  const isAnchored = (pattern: string): boolean => /^\^|\$$/.test(pattern)
  const whole = words.filter(pattern => !isAnchored(pattern)).join('|')
  const anchored = words.filter(isAnchored).map(wholeWords)
  return new RegExp(
    [...(whole ? [wholeWords(whole)] : []), ...anchored, ...others].join('|'),
    flags,
  )
}

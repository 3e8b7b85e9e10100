import { readdirSync, readFileSync } from 'node:fs'

/**
 * The words of one language, from `<code>.json`; README.md describes each list. Words stand in lines, separated by
 * spaces; phrases in lines, separated by commas. A list that a language does not have is left out.
 */
export type Language = {
  /** Its English name. */
  language: string
} & Partial<Record<WordList | PhraseList, readonly string[]>>

type WordList = 'ownWords' | 'technicalNames'
type PhraseList = 'phatic' | 'generalRequests' | 'sensitive'

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

/** The words of a list, of all languages. */
export const wordsOf = (list: WordList): string[] =>
  [...languages.values()].flatMap(language =>
    (language[list] ?? []).flatMap(line => line.split(' ')),
  )

/** The phrases of a list, of all languages. */
export const phrasesOf = (list: PhraseList): string[] =>
  [...languages.values()].flatMap(language =>
    (language[list] ?? []).flatMap(line => line.split(', ')),
  )

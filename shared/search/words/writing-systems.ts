// Makes terms of words, the same for indexes and questions. When a file of this folder changes, saved indexes are made
// again by themselves (`makers` in vault/read/search/index-snapshots.postgres.ts).
import inflectionRows from '#shared/search/words/inflection-rules.json' with { type: 'json' }
import letterFoldsJson from '#shared/search/words/letter-folds.json' with { type: 'json' }
const letterFolds: Record<string, string> = letterFoldsJson
const foldedLetters = new RegExp(`[${Object.keys(letterFolds).join('')}]`, 'g')

/** Combining marks that are removed; vowel signs of Indic and Thai script stay. */
const diacritics = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]/g

/** Folds compatibility forms, case, accents and the variants of Arabic letters. */
export function foldText(text: string): string {
  // oxlint-disable-next-line no-control-regex -- tests for ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(diacritics, '')
    .normalize('NFC')
    .replace(foldedLetters, letter => letterFolds[letter] ?? letter)
}

const unspaced = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\u30fc\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}`
/** A character of a script that writes words without spaces between them. */
export const unspacedScript = new RegExp(`[${unspaced}]`, 'u')
const unspacedRuns = new RegExp(`[${unspaced}\\p{M}]+|[^${unspaced}]+`, 'gu')
const ideograph = /\p{sc=Han}/u

/** Returns the pairs of neighbouring characters, and the single ideographs, of a folded word. */
function characterBigrams(run: string): string[] {
  const characters = Array.from(run)
  if (characters.length === 1) return characters
  const grams: string[] = []
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!
    if (ideograph.test(character)) grams.push(character)
    const next = characters[i + 1]
    if (next !== undefined) grams.push(character + next)
  }
  return grams
}

/**
 * Returns the terms of a folded word in a script other than Latin; undefined for Latin letters. Scripts without spaces
 * yield pairs of characters. Inflected languages yield the word and a short root that ends in `*`, so that other forms
 * match and the exact form scores more.
 */
export function nonLatinTerms(word: string): string[] | undefined {
  if (unspacedScript.test(word)) {
    return (word.match(unspacedRuns) ?? []).flatMap(run =>
      unspacedScript.test(run) ? characterBigrams(run) : [run],
    )
  }
  if (/\p{sc=Hang}/u.test(word)) return word.length < 2 ? [word] : [word, ...characterBigrams(word)]
  if (/\p{sc=Latn}/u.test(word)) return undefined
  const root = truncatedRoot(word)
  return root === undefined ? [word] : [word, root]
}

/** A root of `rootLength` letters, six in most scripts, keeps unrelated words apart; three letters must remain of any. */
const inflectionRules = inflectionRows.map(({ script, prefix, suffix, rootLength }) => ({
  script: new RegExp(script, 'u'),
  prefix: prefix === undefined ? undefined : new RegExp(prefix, 'u'),
  suffix: new RegExp(suffix, 'u'),
  rootLength,
}))

function truncatedRoot(word: string): string | undefined {
  const { prefix, suffix, rootLength } =
    inflectionRules.find(entry => entry.script.test(word)) ?? inflectionRules[0]!
  const bare = prefix ? word.replace(prefix, '') : word
  const root = bare.replace(suffix, '')
  const truncated = (root.length >= 3 ? root : bare).slice(0, rootLength)
  return truncated.length >= 3 ? `${truncated}*` : undefined
}

/** Returns the root of a folded word of a foreign language in Latin letters; none of a short word. */
export function latinRoot(word: string): string[] {
  if (word.length < 4) return []
  const bare = word.replace(/(?<=.{4})[snrtm]$/, '').replace(/(?<=.{3})[aeiouy]{1,2}$/, '')
  return [`${bare.slice(0, 6)}*`]
}

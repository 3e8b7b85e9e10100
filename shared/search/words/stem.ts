import tables from '#shared/search/words/stem.json' with { type: 'json' }

/**
 * Stems of English words by Porter's second algorithm (Porter2), after a table of irregular forms:
 * the stem of "went", "going" and "goes" is "go". Texts and queries in other languages go through
 * the same rules, so equal words stay equal.
 */

const vowel = /[aeiouy]/
const doubleConsonant = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/
const shortSyllable = /(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$/

/** @param word Lower case, accents folded; returned unchanged when it has other letters than a to z. */
export function stemOf(word: string): string {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word
  return irregular.get(word) ?? exceptions.get(word) ?? porterStem(word)
}

function porterStem(word: string): string {
  // A y that begins a syllable is a consonant; it is written as Y until the end.
  let stem = word.replace(/^y|(?<=[aeiouy])y/g, 'Y')
  const r1 = startOfR1(stem)
  const r2 = nextRegion(stem, r1)
  stem = stripPlural(stem)
  if (exceptionsAfterPlural.has(stem)) return stem
  stem = stripPastAndParticiple(stem, r1)
  stem = stem.replace(/(?<=.[^aeiouy])[yY]$/, 'i')
  stem = replaceSuffix(stem, derivationalSuffixes, r1)
  stem = replaceSuffix(stem, adjectivalSuffixes, r1)
  if (stem.endsWith('ative') && stem.length - 5 >= r2) stem = stem.slice(0, -5)
  stem = dropSuffix(stem, r2)
  return stripFinalLetter(stem, r1, r2).toLowerCase()
}

function startOfR1(word: string): number {
  const prefix = /^(?:gener|commun|arsen|past|univers|later|emerg|organ|inter)/.exec(word)
  return prefix ? prefix[0].length : nextRegion(word, 0)
}

function nextRegion(word: string, from: number): number {
  const match = /[aeiouy][^aeiouy]/.exec(word.slice(from))
  return match ? from + match.index + 2 : word.length
}

function stripPlural(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2)
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1)
  if (/(?:us|ss)$/.test(word) || !word.endsWith('s')) return word
  return vowel.test(word.slice(0, -2)) ? word.slice(0, -1) : word
}

function stripPastAndParticiple(word: string, r1: number): string {
  const eed = /eed(?:ly)?$/.exec(word)
  if (eed) return eed.index >= r1 ? `${word.slice(0, eed.index)}ee` : word
  const suffix = /(?:ed|ing)(?:ly)?$/.exec(word)
  if (!suffix || !vowel.test(word.slice(0, suffix.index))) return word
  const stem = word.slice(0, suffix.index)
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`
  if (doubleConsonant.test(stem) && stem.length > 3) return stem.slice(0, -1)
  return r1 >= stem.length && shortSyllable.test(stem) ? `${stem}e` : stem
}

type SuffixReplacements = readonly (readonly [suffix: string, replacement: string])[]

/** Entries `word:stem`, with blanks between them; a word alone is its own stem. */
const pairsOf = (list: string): SuffixReplacements =>
  list.split(' ').map(entry => {
    const [word = '', stem = word] = entry.split(':')
    return [word, stem] as const
  })

const derivationalSuffixes = pairsOf(tables.derivationalSuffixes)
const adjectivalSuffixes = pairsOf(tables.adjectivalSuffixes)

function replaceSuffix(word: string, table: SuffixReplacements, r1: number): string {
  for (const [suffix, replacement] of table) {
    if (!word.endsWith(suffix)) continue
    const at = word.length - suffix.length
    return at >= r1 ? word.slice(0, at) + replacement : word
  }
  const li = table === derivationalSuffixes && /(?<=[cdeghkmnrt])li$/.exec(word)
  return li && li.index >= r1 ? word.slice(0, li.index) : word
}

const residualSuffixes =
  /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|(?<=[st])ion|al|er|ic)$/

function dropSuffix(word: string, r2: number): string {
  const suffix = residualSuffixes.exec(word)
  return suffix && suffix.index >= r2 ? word.slice(0, suffix.index) : word
}

function stripFinalLetter(word: string, r1: number, r2: number): string {
  const last = word.length - 1
  if (word.endsWith('e')) {
    const drops = last >= r2 || (last >= r1 && !shortSyllable.test(word.slice(0, -1)))
    return drops ? word.slice(0, -1) : word
  }
  return word.endsWith('ll') && last >= r2 ? word.slice(0, -1) : word
}

/** Words whose stems by the rules would be those of unrelated words: news, new. */
const exceptions = new Map(pairsOf(tables.exceptions))
const exceptionsAfterPlural = new Set(tables.exceptionsAfterPlural.split(' '))

/** By an irregular or related form. Each entry of the table is a base form and its forms. */
const irregular = new Map<string, string>()
for (const entry of tables.irregularForms.flatMap(line => line.split('|'))) {
  const [base = '', ...others] = entry.split(' ')
  const stem = porterStem(base)
  // The first entry that names a form wins: "found" is of find, not of founding.
  for (const form of others) if (!irregular.has(form)) irregular.set(form, stem)
}

/**
 * Texts that make a regular expression work hard: it is read into its atoms, and each beginning of what it
 * matches is a part to repeat, as backtracking needs many beginnings without an end.
 */
export function hostileParts(pattern: RegExp): string[] {
  const parts = new Set(commonParts)
  const { alternatives } = parseAlternatives(pattern.source, 0)
  for (const alternative of alternatives) {
    for (const prefix of prefixes(alternative, '', atomSampler(pattern.flags))) {
      parts.add(prefix)
      for (const separator of separators) parts.add(prefix + separator)
    }
  }
  return [...parts].filter(part => part !== '')
}

/**
 * Each part as a text of a length: repeated, and once with its last character repeated; a character that few
 * patterns take ends it, so that what must reach the end fails there.
 */
export function fillers(part: string, length: number): string[] {
  const last = Array.from(part).at(-1)!
  return [
    `${part.repeat(Math.ceil(length / part.length))}\u0001`,
    ...(part === last ? [] : [`${part}${last.repeat(length / last.length)}\u0001`]),
  ]
}

const separators = [' ', '-', '\n', '\u0001']

/** Some of a longer list of alternatives, such as a table of words, are tried. */
const alternativesMax = 8

export const commonParts = [
  ...Array.from(' <-"\'/.,:;=&%(){}[]|_@+~`#?!*\\\n\r\t\u00A0\u2028\u0001aZ5éж漢\u0301\u200D💛'),
  ' \n',
  '\r\n',
  '< ',
  'a ',
  'a.',
  'a-',
  'eyJ-',
  '-----BEGIN PRIVATE KEY-----',
  '1 ',
  '1,',
  '1.',
]

/** One step of a pattern: an atom with its repetitions, a group of alternatives, or none that takes text. */
type Step =
  | { atom: string; least: number }
  | { alternatives: Step[][]; least: number; isNegated: boolean }

type Sampler = (atom: string) => string[]

/** Characters of each class that patterns of this project know. */
const candidates = Array.from(
  ' \t\n-_.:,;/+=@#\'"aeszAZ059éжЖ漢カ한ا\u0301!?<>()[]{}|\\^$*%&~`\u0001😀',
)

function atomSampler(flags: string): Sampler {
  const known = new Map<string, string[]>()
  const sample = (atom: string): string[] => {
    if (Array.from(atom).length === 1 && atom !== '.') return [atom]
    const matcher = new RegExp(`^(?:${atom})$`, flags.replaceAll(/[dgy]/g, ''))
    const matching = candidates.filter(character => matcher.test(character))
    // The first, the last and what is between, so that different kinds of a wide class are seen.
    return spread(matching, 4)
  }
  return atom => {
    const characters = known.get(atom) ?? sample(atom)
    known.set(atom, characters)
    return characters
  }
}

/** What the first steps of a sequence match, for each number of steps, behind a text. */
function prefixes(steps: readonly Step[], before: string, sample: Sampler): string[] {
  const found: string[] = []
  for (const [index, step] of steps.entries()) {
    if ('atom' in step) {
      const characters = sample(step.atom)
      if (!isLetter(step) || !isLetter(steps[index + 1])) {
        for (const character of characters) found.push(before + character.repeat(step.least || 1))
      }
      before += (characters[0] ?? '').repeat(Math.max(1, step.least))
      continue
    }
    for (const alternative of spread(step.alternatives, alternativesMax)) {
      found.push(...prefixes(alternative, before, sample))
    }
    if (step.isNegated) continue
    const [first] = step.alternatives.map(alternative => shortest(alternative, sample))
    before += first!.repeat(Math.max(1, step.least))
  }
  return found
}

/** A letter of a word, which is no beginning of its own. */
const isLetter = (step: Step | undefined): boolean =>
  step !== undefined && 'atom' in step && step.least === 1 && /^\p{L}$/u.test(step.atom)

/** About so many of a list, from all of it. */
function spread<Item>(list: readonly Item[], count: number): Item[] {
  const step = Math.max(1, Math.floor(list.length / count))
  return list.filter((_, index) => index % step === 0)
}

const shortest = (steps: readonly Step[], sample: Sampler): string =>
  steps
    .map(step =>
      'atom' in step
        ? (sample(step.atom)[0] ?? '').repeat(Math.max(1, step.least))
        : step.isNegated
          ? ''
          : shortest(step.alternatives[0]!, sample).repeat(Math.max(1, step.least)),
    )
    .join('')

function parseAlternatives(source: string, at: number): { alternatives: Step[][]; end: number } {
  const alternatives: Step[][] = [[]]
  while (at < source.length && source[at] !== ')') {
    if (source[at] === '|') {
      alternatives.push([])
      at++
      continue
    }
    const { step, end } = parseStep(source, at)
    if (step) alternatives.at(-1)!.push(step)
    at = end
  }
  return { alternatives, end: at }
}

function parseStep(source: string, at: number): { step?: Step; end: number } {
  const assertion = /^(?:\^|\$|\\[bB])/.exec(source.slice(at))
  if (assertion) return { end: at + assertion[0].length }
  if (source[at] === '(') {
    const opening = /^\((?:\?(?:<?[=!]|:|<\w+>))?/.exec(source.slice(at))![0]
    const { alternatives, end } = parseAlternatives(source, at + opening.length)
    const quantifier = quantifierAt(source, end + 1)
    const isNegated = opening.endsWith('!')
    return { step: { alternatives, least: quantifier.least, isNegated }, end: quantifier.end }
  }
  const atom =
    /^(?:\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\dA-Fa-f]{4}|\\x[\dA-Fa-f]{2}|\\.|\[(?:\\.|[^\]\\])*\]|.)/su.exec(
      source.slice(at),
    )![0]
  const { least, end } = quantifierAt(source, at + atom.length)
  // What a back reference matches stands before it already.
  if (/^\\[1-9]/.test(atom)) return { end }
  return { step: { atom, least }, end }
}

function quantifierAt(source: string, at: number): { least: number; end: number } {
  const found = /^(?:[*+?]|\{(\d+)(?:,\d*)?\})\??/.exec(source.slice(at))
  if (!found) return { least: 1, end: at }
  return { least: Math.min(Number(found[1] ?? 1), 40), end: at + found[0].length }
}

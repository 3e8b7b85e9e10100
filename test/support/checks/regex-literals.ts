/** A regular expression as it stands in a source file. */
export type RegexLiteral = { source: string; flags: string; line: number }

/** Words after which a slash begins a regular expression; after any other word it divides. */
const operatorWords = new Set(
  'await case delete do else extends in instanceof new of return throw typeof void yield'.split(
    ' ',
  ),
)

const wordCharacter = /[\w$\u0080-\uFFFF]/

/** What a slash, an opening or closing brace and a word mean at one place of a source. */
type Place = {
  at: number
  /** The last token but white space and comments, or its last character. */
  last: string
  /** Braces open in each template whose `${` is open. */
  templates: number[]
}

/**
 * The regular expressions written in a TypeScript source, found token by token: slashes in strings, templates
 * and comments begin none, nor does a division.
 */
export function findRegexLiterals(source: string): RegexLiteral[] {
  const found: RegexLiteral[] = []
  const place: Place = { at: 0, last: '', templates: [] }
  while (place.at < source.length) {
    const character = source[place.at]!
    const next = source[place.at + 1]
    if (/\s/.test(character)) place.at++
    else if (character === '/' && next === '/') place.at = lineEnd(source, place.at)
    else if (character === '/' && next === '*') place.at = source.indexOf('*/', place.at + 2) + 2
    else if (character === '/' && beginsRegex(place.last)) found.push(readRegex(source, place))
    else if (character === "'" || character === '"') readString(source, place)
    else if (character === '`') readTemplate(source, place)
    else if (wordCharacter.test(character)) readWord(source, place)
    else readPunctuation(source, place)
  }
  return found
}

const beginsRegex = (last: string): boolean =>
  last === '' || operatorWords.has(last) || (!/[\w$)\]}'"`]$/.test(last) && last !== '++')

function readRegex(source: string, place: Place): RegexLiteral {
  const start = place.at
  let isClass = false
  for (place.at++; isClass || source[place.at] !== '/'; place.at++) {
    const character = source[place.at]
    if (character === '\\') place.at++
    else if (character === '[') isClass = true
    else if (character === ']') isClass = false
    else if (character === '\n' || character === undefined) throw new Error('no end of a regex')
  }
  const end = place.at++
  while (/[a-z]/.test(source[place.at] ?? '')) place.at++
  place.last = ')'
  return {
    source: source.slice(start + 1, end),
    flags: source.slice(end + 1, place.at),
    line: source.slice(0, start).split('\n').length,
  }
}

function readString(source: string, place: Place): void {
  const quote = source[place.at]
  for (place.at++; source[place.at] !== quote; place.at++) if (source[place.at] === '\\') place.at++
  place.at++
  place.last = quote!
}

/** Reads from a back quote, or from the brace that closes a `${`, to the end or the next `${`. */
function readTemplate(source: string, place: Place): void {
  for (place.at++; source[place.at] !== '`'; place.at++) {
    if (source[place.at] === '\\') place.at++
    else if (source[place.at] === '$' && source[place.at + 1] === '{') {
      place.at += 2
      place.templates.push(0)
      place.last = '{'
      return
    }
  }
  place.at++
  place.last = '`'
}

function readWord(source: string, place: Place): void {
  const start = place.at
  while (wordCharacter.test(source[place.at] ?? '')) place.at++
  place.last = source.slice(start, place.at)
}

function readPunctuation(source: string, place: Place): void {
  const character = source[place.at]!
  const open = place.templates.length - 1
  if (character === '}' && place.templates[open] === 0) {
    place.templates.pop()
    return readTemplate(source, place)
  }
  if (open >= 0 && character === '{') place.templates[open]!++
  if (open >= 0 && character === '}') place.templates[open]!--
  // The value before a non-null assertion remains the last token.
  const isPostfix = character === '!' && /[\w)\]]/.test(source[place.at - 1] ?? '')
  if (!isPostfix) place.last = source.startsWith('++', place.at) ? '++' : character
  place.at += place.last === '++' ? 2 : 1
}

const lineEnd = (source: string, at: number): number => {
  const end = source.indexOf('\n', at)
  return end < 0 ? source.length : end
}

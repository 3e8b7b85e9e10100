/** Letters that are one in some spelling, beyond upper and lower case: one pattern for all of them. */
const sameLetters: readonly (readonly [letters: RegExp, pattern: string])[] = [
  [/^(?:ss|ß|ẞ)/i, '(?:ss|ß|ẞ)'],
  // Turkish has four letters i: with and without a dot, in both cases; a dot may be written apart.
  [/^(?:i\u0307?|İ|ı)/i, '(?:i\u0307?|İ|ı)'],
  [/^[σς]/i, '[σςΣ]'],
]

const special = /[\\^$.*+?()[\]{}|]/g

/**
 * The source of a regular expression, to be run without regard to case, that finds a piece of text
 * however it is spelled: composed or decomposed, `ß` as `ss`, `i` with or without its dot.
 */
export function textPattern(search: string): string {
  const forms = new Set([search, search.normalize('NFC'), search.normalize('NFD')])
  return [...forms].map(formPattern).join('|')
}

function formPattern(form: string): string {
  let pattern = ''
  for (let rest = form; rest !== '';) {
    const [piece, source] = firstPiece(rest)
    pattern += source
    rest = rest.slice(piece.length)
  }
  return pattern
}

function firstPiece(text: string): [piece: string, source: string] {
  for (const [letters, pattern] of sameLetters) {
    const piece = letters.exec(text.slice(0, 3))?.[0]
    if (piece) return [piece, pattern]
  }
  const letter = String.fromCodePoint(text.codePointAt(0)!)
  return [letter, letter.replaceAll(special, String.raw`\$&`)]
}

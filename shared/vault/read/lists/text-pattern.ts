/** Soft hyphens, zero-width characters, marks of direction and the selector of emoji: what stands between two letters unseen. */
const invisible = '[\\p{Cf}\ufe0f]'
const gap = `${invisible}*`
const allInvisible = new RegExp(invisible, 'gu')

/** MongoDB takes patterns of up to 32,764 bytes. */
const patternBytesMax = 32_000

/** Letters that are one in some spelling, beyond upper and lower case: one pattern for all of them. */
const sameLetters: readonly (readonly [letters: RegExp, pattern: string])[] = [
  [/^(?:ss|ß|ẞ)/i, `(?:s${gap}s|ß|ẞ)`],
  // Turkish has four letters i: with and without a dot, in both cases; a dot may be written apart.
  [/^(?:i\u0307?|İ|ı)/i, '(?:i\u0307?|İ|ı)'],
  [/^[σς]/i, '[σςΣ]'],
]

const special = /[\\^$.*+?()[\]{}|]/g

/**
 * The source of a regular expression, to be run without regard to case, that finds a piece of text
 * however it is spelled: composed or decomposed, `ß` as `ss`, `i` with or without its dot, with or without soft
 * hyphens and other characters that are not shown, but for a search so long that the pattern would be refused.
 */
export function textPattern(search: string): string {
  const plain = search.replaceAll(allInvisible, '') || search
  const forms = [...new Set([plain, plain.normalize('NFC'), plain.normalize('NFD')])].map(piecesOf)
  const pattern = forms.map(pieces => pieces.join(gap)).join('|')
  if (Buffer.byteLength(pattern) <= patternBytesMax) return pattern
  return forms.map(pieces => pieces.join('')).join('|')
}

function piecesOf(form: string): string[] {
  const pieces: string[] = []
  for (let rest = form; rest !== '';) {
    const [piece, source] = firstPiece(rest)
    pieces.push(source)
    rest = rest.slice(piece.length)
  }
  return pieces
}

function firstPiece(text: string): [piece: string, source: string] {
  for (const [letters, pattern] of sameLetters) {
    const piece = letters.exec(text.slice(0, 3))?.[0]
    if (piece) return [piece, pattern]
  }
  const letter = String.fromCodePoint(text.codePointAt(0)!)
  return [letter, letter.replaceAll(special, String.raw`\$&`)]
}

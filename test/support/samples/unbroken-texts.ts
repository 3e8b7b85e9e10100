/** Code points of letters, and of signs that stand in their place. */
const alphabets = {
  Latin: [0x61, 0x7a],
  Cyrillic: [0x430, 0x44f],
  Thai: [0xe01, 0xe2e],
  Chinese: [0x4e00, 0x9fa5],
  Japanese: [0x3041, 0x3096],
  Arabic: [0x628, 0x64a],
  Devanagari: [0x905, 0x939],
  Hangul: [0xac00, 0xd7a3],
  emoji: [0x1f300, 0x1f5ff],
  'mathematical letters': [0x1d400, 0x1d454],
} as const

/** Random letters without a space in ten scripts, the same in each run; `length` is their `string.length` at most. */
export function unbrokenTexts(length: number): Record<keyof typeof alphabets, string> {
  const texts = Object.entries(alphabets).map(([script, [first, last]]) => {
    let seed = first
    const letter = (): number => {
      seed = (seed * 48_271) % 0x7fff_ffff
      return first + (seed % (last - first + 1))
    }
    const units = first > 0xffff ? 2 : 1
    const letters = Array.from({ length: Math.floor(length / units) }, letter)
    return [script, letters.map(code => String.fromCodePoint(code)).join('')]
  })
  return Object.fromEntries(texts) as Record<keyof typeof alphabets, string>
}

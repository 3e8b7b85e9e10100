const alphabet = 'abcdefghijklmnopqrstuvwxyz'

/**
 * The words at a Damerau-Levenshtein distance of 1 from a word of letters a to z: one inserted,
 * deleted or replaced, or two swapped. About 54 per letter; none for words under five letters, whose
 * variants are mostly other words.
 */
export function spellingVariants(word: string): Set<string> {
  const variants = new Set<string>()
  if (!/^[a-z]{5,20}$/.test(word)) return variants
  for (let i = 0; i <= word.length; i++) {
    const [head, tail] = [word.slice(0, i), word.slice(i)]
    for (const letter of alphabet) {
      variants.add(head + letter + tail)
      if (tail !== '') variants.add(head + letter + tail.slice(1))
    }
    if (tail !== '') variants.add(head + tail.slice(1))
    if (tail.length > 1) variants.add(head + tail[1] + tail[0] + tail.slice(2))
  }
  variants.delete(word)
  return variants
}

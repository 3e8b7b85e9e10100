const alphabet = 'abcdefghijklmnopqrstuvwxyz'

/**
 * The words one slip of the fingers away from a word of plain letters: a letter too many, too few
 * or wrong, or two of them swapped. About 54 for each letter; none for words under five letters,
 * where every slip is another word.
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

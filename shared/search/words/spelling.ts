const letters = 'abcdefghijklmnopqrstuvwxyz'

/**
 * The words one slip of the fingers away from a word of plain letters: a letter too many, too few
 * or wrong, or two of them swapped. About 54 for each letter; none for words under five letters,
 * where every slip is another word.
 */
export function slipsOf(word: string): Set<string> {
  const slips = new Set<string>()
  if (!/^[a-z]{5,20}$/.test(word)) return slips
  for (let i = 0; i <= word.length; i++) {
    const [head, tail] = [word.slice(0, i), word.slice(i)]
    for (const letter of letters) {
      slips.add(head + letter + tail)
      if (tail !== '') slips.add(head + letter + tail.slice(1))
    }
    if (tail !== '') slips.add(head + tail.slice(1))
    if (tail.length > 1) slips.add(head + tail[1] + tail[0] + tail.slice(2))
  }
  slips.delete(word)
  return slips
}

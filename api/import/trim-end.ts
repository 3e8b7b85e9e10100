/** Takes these characters off the end of a text, in time linear to it, which a pattern that ends in `+$` does not. */
export function trimEndOf(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text[end - 1]!)) end--
  return text.slice(0, end)
}

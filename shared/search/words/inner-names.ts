const innerCapitals = /(?<=[\p{L}\d,;–-]\s)\p{Lu}[\p{L}'’]+/gu
/** With a larger share of capitalised words, the text is a title, or German. */
const capitalisedShareMax = 0.3

/** The words of a text that are capitalised without beginning a sentence. */
export function innerNames(text: string): string[] {
  const capitals = text.match(innerCapitals)
  if (!capitals) return []
  if (capitals.length > 1 && capitals.length > text.split(/\s+/).length * capitalisedShareMax) {
    return []
  }
  return capitals
}

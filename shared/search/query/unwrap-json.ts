/** A longer JSON text is data, not a wrapped question. */
const jsonLengthMax = 16_000
const stringsMax = 64
const depthMax = 16

/** Names of fields that say how to answer, not what is asked. */
const settingNames =
  /^(?:id|role|type|model|format|lang|language|locale|version|session|timestamp|date|mode|tone|style|system|instructions?|user_?id|source|temperature)$/i

/**
 * A text in which a JSON value, alone or among other words, is replaced by its strings, each on a
 * line of its own; the text itself when it holds none.
 */
export function unwrapJson(text: string): string {
  const start = text.search(/[{[]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  if (start < 0 || end <= start || end - start > jsonLengthMax) return text
  const value = parseJson(text.slice(start, end + 1))
  if (typeof value !== 'object' || value === null) return text
  const strings: string[] = []
  collectStrings(value, strings)
  return [text.slice(0, start), ...strings, text.slice(end + 1)]
    .map(part => part.replaceAll(/```\w*/g, ''))
    .filter(part => part.trim() !== '')
    .join('\n')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The strings with a space, or in scripts without spaces, that are not settings; in order. */
function collectStrings(value: object, strings: string[], depth = 0): void {
  for (const [name, item] of Object.entries(value)) {
    if (strings.length >= stringsMax || depth >= depthMax) return
    if (typeof item === 'object' && item !== null) collectStrings(item, strings, depth + 1)
    else if (typeof item === 'string' && !settingNames.test(name)) {
      if (/\s|[^\p{ASCII}]/u.test(item.trim())) strings.push(item)
    }
  }
}

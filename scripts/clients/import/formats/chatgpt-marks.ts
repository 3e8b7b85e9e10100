/**
 * Marks in answers of ChatGPT, of characters for private use: U+E200 kind U+E202 field U+E202 field … U+E201 is a
 * reference, a link or a widget; U+E203 and U+E204 enclose words that a reference is about. Forms of exports as
 * daugaard47/ChatGPT_Conversations_To_Markdown#8 and CherryHQ/cherry-studio PR 16164 have them.
 */
const group = /\uE200([^\uE200\uE201]*)\uE201/g
const strayMark = /[\uE200-\uE206]/g

/** Kinds whose fields only name sources: results of a search, files, pictures. */
const references = new Set(['cite', 'filecite', 'i'])
const sourceId = /^(?:turn\d+[a-z_]+\d+,?)+$/

/**
 * An answer without its marks: the words that they wrap stay.
 *
 * @returns it, and how many marks had no words
 */
export function withoutMarks(text: string): { text: string; dropped: number } {
  let dropped = 0
  const words = text.replaceAll(group, (_, mark: string) => {
    const [kind, ...fields] = mark.split('\uE202') as [string, ...string[]]
    const shown = references.has(kind) ? '' : shownWords(fields)
    if (shown === '') dropped++
    return shown
  })
  return { text: words.replaceAll(strayMark, ''), dropped }
}

/** `["restaurant","Casa Marisol","Porto"]` shows its second text, a label before an address is a link. */
function shownWords(fields: readonly string[]): string {
  const [label, address] = fields
  if (label && /^https?:/.test(address ?? '')) return `[${label}](${address})`
  return fields
    .filter(field => !sourceId.test(field))
    .map(field => (/^\s*[[{]/.test(field) ? nameInJson(field) : field))
    .filter(words => words !== '')
    .join(' ')
}

function nameInJson(field: string): string {
  try {
    const value: unknown = JSON.parse(field)
    const name: unknown = Array.isArray(value) ? (value[1] ?? value[0]) : ''
    return typeof name === 'string' ? name : ''
  } catch {
    return field
  }
}

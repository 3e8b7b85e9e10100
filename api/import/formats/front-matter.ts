import type { Losses } from '#api/import/draft.ts'

/** Values of the fields of a note: a text, or a list of texts. */
export type FrontMatter = Readonly<Record<string, string | readonly string[]>>

/**
 * Splits a note from the front matter that note programs write: fields of one line, and lists in brackets or with
 * dashes, of YAML 1.2. It runs in browsers too, which load no library for all of YAML. Fields of another form are counted
 * as left out.
 *
 * @returns no fields and the whole text for a note without front matter
 */
export function splitFrontMatter(
  text: string,
  losses: Losses,
): { fields: FrontMatter; body: string } {
  const found = /^\uFEFF?---[ \t]*\r?\n(?:([^]*?)\r?\n)??---[ \t]*(?:\r?\n|$)/.exec(text)
  if (!found) return { fields: {}, body: text.replace(/^\uFEFF/, '') }
  const fields: Record<string, string | string[]> = {}
  let list: string[] | undefined
  for (const line of (found[1] ?? '').split(/\r?\n/)) {
    const item = /^[ \t]*-[ \t]+(.*)$/.exec(line)
    const field = /^([^\s#:-][^:]*):(?:[ \t]+(.*))?$/.exec(line)
    if (item && list) list.push(readScalar(item[1]!))
    else if (field) {
      const value = (field[2] ?? '').trim()
      list = value === '' ? [] : undefined
      fields[field[1]!.trimEnd()] =
        list ?? (/^\[.*\]$/.test(value) ? readList(value) : readScalar(value))
    } else if (line.trim() !== '' && !/^\s*#/.test(line)) {
      list = undefined
      losses.add('lines of front matter that are no fields of one line')
    }
  }
  return { fields, body: text.slice(found[0].length) }
}

/** A list in brackets, such as `[bread, "rye, wheat"]`. */
const readList = (value: string): string[] =>
  [...value.slice(1, -1).matchAll(/"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^,"'\s][^,]*/g)].map(
    ([item]) => readScalar(item),
  )

/** A text without its quotes, or without the comment behind it. */
function readScalar(given: string): string {
  const text = given.trim()
  const double = /^"((?:\\.|[^"\\])*)"/.exec(text)
  if (double) return double[1]!.replaceAll(/\\(["\\/])/g, '$1').replaceAll('\\n', '\n')
  const single = /^'((?:''|[^'])*)'/.exec(text)
  if (single) return single[1]!.replaceAll("''", "'")
  return text.replace(/(?:^|\s)#.*$/, '').trimEnd()
}

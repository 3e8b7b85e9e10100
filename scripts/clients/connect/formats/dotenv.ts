import {
  FormatError,
  lineEnd,
  type FileFormat,
} from '#scripts/clients/connect/formats/file-format.ts'

/** Lines of `NAME=value`. */
export const dotenv: FileFormat = {
  get(text, [name]) {
    const found = findValue(text, name!)
    return found && unquote(found.raw)
  },
  set(text, [name], value) {
    const raw = quote(typeof value === 'string' ? value : JSON.stringify(value))
    const found = findValue(text, name!)
    if (found) return text.slice(0, found.start) + raw + text.slice(found.start + found.raw.length)
    const gap = text === '' || text.endsWith('\n') ? '' : lineEnd(text)
    return `${text}${gap}${name}=${raw}${lineEnd(text)}`
  },
  putBack(text, [name], before) {
    const found = findValue(text, name!)
    if (!found) return text
    const end = found.start + found.raw.length
    const original = findValue(before, name!)
    if (original) return text.slice(0, found.start) + original.raw + text.slice(end)
    const line = text.lastIndexOf('\n', found.start) + 1
    return text.slice(0, line) + text.slice(end).replace(/^.*(?:\r?\n|$)/, '')
  },
}

/** Finds the value in the last line that sets a name, which programs use. A value over several lines is refused. */
function findValue(text: string, name: string): { start: number; raw: string } | undefined {
  const assignments = text.matchAll(/^[ \t]*(?:export[ \t]+)?([\w.]+)[ \t]*=[ \t]*/gm)
  const last = [...assignments].findLast(match => match[1] === name)
  if (!last) return undefined
  const start = last.index + last[0].length
  const raw = /^.*/.exec(text.slice(start))![0].trimEnd()
  if (/^(["'`])(?!.*\1)/.test(raw)) throw new FormatError(`${name} has several lines`)
  return { start, raw }
}

function quote(plain: string): string {
  if (plain.includes('\n')) throw new FormatError('a value of several lines has no place in it')
  return / #|^[\s'"`#]|\s$/.test(plain) ? `"${plain.replaceAll('"', String.raw`\"`)}"` : plain
}

const unquote = (raw: string): string =>
  /^(["'`]).*\1$/.test(raw) && raw.length > 1
    ? raw.slice(1, -1).replaceAll(String.raw`\"`, '"')
    : raw

import { FormatError, type FileFormat } from '#scripts/clients/connect/formats/file-format.ts'

/** Lines of `NAME=value`. */
export const dotenv: FileFormat = {
  find(text, [name]) {
    return findLine(text, name!)?.raw
  },
  set(text, [name], raw) {
    const found = findLine(text, name!)
    if (found) return text.slice(0, found.start) + raw + text.slice(found.end)
    const lines = text.includes('\r\n') ? '\r\n' : '\n'
    const gap = text === '' || text.endsWith('\n') ? '' : lines
    return `${text}${gap}${name}=${raw}${lines}`
  },
  remove(text, [name]) {
    const found = findLine(text, name!)
    if (!found) return text
    const newline = text.indexOf('\n', found.end)
    return text.slice(0, found.line) + (newline === -1 ? '' : text.slice(newline + 1))
  },
  write(value) {
    const plain = typeof value === 'string' ? value : JSON.stringify(value)
    if (plain.includes('\n')) throw new FormatError('a value of several lines has no place in it')
    return / #|^[\s'"`#]|\s$/.test(plain) ? `"${plain.replaceAll('"', String.raw`\"`)}"` : plain
  },
  read: unquote,
  isSame: (one, other) => unquote(one) === unquote(other),
}

type Line = { line: number; start: number; end: number; raw: string }

/** The last line that sets a name, as programs read them; a value over several lines is refused. */
function findLine(text: string, name: string): Line | undefined {
  let line = 0
  let found: Line | undefined
  for (const content of text.split('\n')) {
    const assignment = /^\s*(?:export\s+)?([\w.]+)[ \t]*=[ \t]*/.exec(content)
    if (assignment?.[1] === name) {
      const start = line + assignment[0].length
      const raw = content.slice(assignment[0].length).trimEnd()
      if (/^(["'`])(?!.*\1)/.test(raw)) throw new FormatError(`${name} has several lines`)
      found = { line, start, end: start + raw.length, raw }
    }
    line += content.length + 1
  }
  return found
}

function unquote(raw: string): string {
  const quote = raw[0]
  if (quote !== undefined && `"'\``.includes(quote) && raw.length > 1 && raw.endsWith(quote)) {
    return raw.slice(1, -1).replaceAll(String.raw`\"`, '"')
  }
  return raw
}

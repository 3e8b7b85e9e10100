import {
  FormatError,
  type FileFormat,
  type Path,
  type Value,
} from '#scripts/clients/connect/formats/file-format.ts'
import {
  parseToml,
  unquote,
  type Statement,
} from '#scripts/clients/connect/formats/toml-statements.ts'

/**
 * TOML. A path of one name is a key of the top; a longer one is a table with a header of its own,
 * together with the tables below it, or a key in such a table.
 */
export const toml: FileFormat = {
  find(text, at) {
    const range = findRange(text, at)
    return range && text.slice(range.start, range.end)
  },
  set(text, at, raw) {
    const range = findRange(text, at)
    const lines = text.includes('\r\n') ? '\r\n' : '\n'
    const written = raw.replaceAll('\n', lines)
    if (range) return text.slice(0, range.start) + written + text.slice(range.end)
    if (at.length > 1) {
      const gap = text === '' ? '' : text.endsWith('\n') ? lines : lines + lines
      return `${text}${gap}${written}${lines}`
    }
    return insertTopKey(text, `${at[0]} = ${written}`, lines)
  },
  remove(text, at) {
    const range = findRange(text, at)
    if (!range) return text
    const start = text.lastIndexOf('\n', range.start) + 1
    const newline = text.indexOf('\n', range.end)
    const end = newline === -1 ? text.length : newline + 1
    const before = text.slice(0, start)
    const after = text.slice(end)
    // The empty line before a table went in with it; so did the one behind a first key.
    if (at.length > 1) return before.replace(/(?<=\n)\r?\n$/, '') + after
    return before === '' ? after.replace(/^\r?\n/, '') : before + after
  },
  write: (value, at) =>
    at.length === 1 ? inline(value) : table(value as Record<string, Value>, at),
  read: readValue,
  isSame: (one, other) => statementLines(one) === statementLines(other),
}

type Range = { start: number; end: number }

/** Where a key's value, or a table with its header, stands. */
function findRange(text: string, at: Path): Range | undefined {
  const statements = parseToml(text)
  const own = statements.filter(({ path }) => at.every((name, depth) => path[depth] === name))
  if (own.length === 0) {
    refuseInline(statements, at)
    return undefined
  }
  const exact = own.find(({ path, value }) => path.length === at.length && value !== undefined)
  if (exact) return { start: exact.value!, end: exact.end }
  const first = statements.indexOf(own[0]!)
  const isWhole = own.every((statement, index) => statements[first + index] === statement)
  if (own[0]!.value !== undefined || !isWhole) {
    throw new FormatError(`${at.join('.')} is not written as a table of its own`)
  }
  return { start: own[0]!.start, end: own.at(-1)!.end }
}

/** A table written as a value, `a = { … }`, may hold what is looked for. */
function refuseInline(statements: Statement[], at: Path): void {
  const holder = statements.find(
    ({ path, value }) =>
      value !== undefined &&
      path.length < at.length &&
      path.every((name, depth) => name === at[depth]),
  )
  if (holder) throw new FormatError(`${holder.path.join('.')} is not written as a table of its own`)
}

/** Keys of the top stand before all tables. */
function insertTopKey(text: string, line: string, lines: string): string {
  const statements = parseToml(text)
  const table = statements.findIndex(({ value }) => value === undefined)
  const last = (table === -1 ? statements : statements.slice(0, table)).at(-1)
  if (!last) return `${line}${lines}${text === '' ? '' : lines}${text}`
  const newline = text.indexOf('\n', last.end)
  const at = newline === -1 ? text.length : newline + 1
  const gap = newline === -1 ? lines : ''
  return `${text.slice(0, at)}${gap}${line}${lines}${text.slice(at)}`
}

const key = (name: string): string => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name))

const inline = (value: Value): string =>
  typeof value === 'object' && !Array.isArray(value)
    ? `{ ${Object.entries(value)
        .map(([name, inner]) => `${key(name)} = ${inline(inner)}`)
        .join(', ')} }`
    : JSON.stringify(value)

const table = (value: Record<string, Value>, at: Path): string =>
  [
    `[${at.map(key).join('.')}]`,
    ...Object.entries(value).map(([name, inner]) => `${key(name)} = ${inline(inner)}`),
  ].join('\n')

const pair = /("(?:[^"\\\n]|\\.)*"|[\w-]+)\s*=\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')/g

/** A string, a boolean, or a table of strings on one line; anything else is its text. */
function readValue(raw: string): unknown {
  if (/^["'](?!["']{2})/.test(raw)) return unquote(raw)
  if (raw === 'true' || raw === 'false') return raw === 'true'
  if (!raw.startsWith('{')) return raw
  return Object.fromEntries(
    [...raw.matchAll(pair)].map(([, name, value]) => [
      name!.startsWith('"') ? unquote(name!) : name!,
      unquote(value!),
    ]),
  )
}

/** The lines of a value without the white space around them. */
const statementLines = (raw: string): string =>
  raw
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')

import { tomlText } from '#api/client/programs/config-texts.ts'
import {
  FormatError,
  lineEnd,
  type FileFormat,
  type Path,
} from '#scripts/clients/connect/formats/file-format.ts'

/**
 * TOML. A path of one name is a key of the top; a longer one is a table with a header of its own, together with
 * the tables below it. A table is not written between marks: the editor that Codex changes its file with puts new
 * tables before a comment at the end, so between the marks, and an undo would remove them too.
 */
export const toml: FileFormat = {
  get(text, at) {
    const own = readStatements(text).filter(({ path, value }) => value && isIn(path, at))
    const exact = own.find(({ path }) => path!.length === at.length)
    if (exact || own.length === 0) return exact && readValue(exact.value!)
    return Object.fromEntries(
      own.map(({ path, value }) => [path!.slice(at.length).join('.'), readValue(value!)]),
    )
  },
  set(text, at, value) {
    const end = lineEnd(text)
    const statements = readStatements(text === '' || text.endsWith('\n') ? text : text + end)
    const first = statements.findIndex(({ path }) => isIn(path, at))
    const last = statements.findLastIndex(({ path }) => isIn(path, at))
    const isTable = at.length > 1
    const isScattered = statements.slice(first, last).some(({ path }) => path && !isIn(path, at))
    const isInline = statements.some(({ path, value }) => value && isTable && isIn(at, path!))
    if (isScattered || isInline || (first !== -1 && isTable === !!statements[first]!.value)) {
      throw new FormatError(`${at.join('.')} is not written as a table of its own`)
    }
    const texts = statements.map(statement => statement.text)
    const written = tomlText(at, value).replaceAll('\n', end)
    if (first !== -1) texts.splice(first, last - first + 1, written)
    else if (isTable) texts.push(text === '' ? '' : end, written)
    else texts.splice(statements.findLastIndex(({ isTop }) => isTop) + 1, 0, written)
    return texts.join('')
  },
  putBack(text, at, before) {
    const statements = readStatements(text)
    const first = statements.findIndex(({ path }) => isIn(path, at))
    if (first === -1) return text
    const original = readStatements(before).filter(({ path }) => isIn(path, at))
    const isGap =
      original.length === 0 && at.length > 1 && statements[first - 1]?.text.trim() === ''
    return [
      ...statements.slice(0, isGap ? first - 1 : first),
      ...original,
      ...statements.slice(first).filter(({ path }) => !isIn(path, at)),
    ]
      .map(statement => statement.text)
      .join('')
  },
}

/** A header, or a key with its value over any number of lines, or a line without either. */
type Statement = {
  text: string
  /** From the top of the file, also for a key inside a table. */
  path?: string[]
  /** The text of a key. */
  value?: string
  /** A key before all tables. */
  isTop?: boolean
}

const isIn = (path: Path | undefined, at: Path): boolean =>
  path !== undefined && at.every((name, depth) => path[depth] === name)

const name = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)`
const names = String.raw`${name}(?:[ \t]*\.[ \t]*${name})*`
const header = new RegExp(String.raw`^\s*\[{1,2}[ \t]*(${names})[ \t]*\]{1,2}[ \t]*(?:#.*)?\s*$`)
const entry = new RegExp(String.raw`^\s*(${names})[ \t]*=[ \t]*(\S[^]*)$`)
const tokens =
  /"""(?:[^"\\]|\\[^]|"(?!""))*"{3,5}|'''(?:[^']|'(?!''))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*|[[\]{}\n]/g

/** @throws FormatError for a text that is no TOML. */
function readStatements(text: string): Statement[] {
  let table: string[] = []
  return splitStatements(text).map(part => {
    if (/^[\uFEFF\s]*(?:#.*\s*)?$/.test(part)) return { text: part }
    const [, opened] = header.exec(part) ?? []
    if (opened) return { text: part, path: (table = readNames(opened)) }
    const [, key, value] = entry.exec(part) ?? []
    if (!key || /["']/.test(value!.replaceAll(tokens, ''))) {
      throw new FormatError(`this cannot be read: ${part.trim().slice(0, 80)}`)
    }
    return {
      text: part,
      path: [...table, ...readNames(key)],
      value: value!,
      isTop: table.length === 0,
    }
  })
}

/** Cuts a text at the ends of its lines, except within brackets and strings of several lines. */
function splitStatements(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (const { 0: found, index } of text.matchAll(tokens)) {
    if (found === '[' || found === '{') depth++
    else if (found === ']' || found === '}') depth--
    else if (found === '\n' && depth <= 0) {
      parts.push(text.slice(start, index + 1))
      start = index + 1
    }
  }
  if (depth !== 0) throw new FormatError('a bracket is not closed')
  return start === text.length ? parts : [...parts, text.slice(start)]
}

const readNames = (dotted: string): string[] =>
  [...dotted.matchAll(new RegExp(name, 'g'))].map(([one]) =>
    /^["']/.test(one) ? unquote(one) : one,
  )

/** Reads a string, a boolean, or a table of strings on one line; anything else is returned as text. */
function readValue(text: string): unknown {
  const [raw] = /^(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|true\b|false\b|\{.*\})/.exec(text) ?? [
    text.trim(),
  ]
  if (raw === 'true' || raw === 'false') return raw === 'true'
  if (/^["'](?!["']{2})/.test(raw)) return unquote(raw)
  if (!raw.startsWith('{')) return raw
  const pairs = raw.matchAll(new RegExp(String.raw`(${name})[ \t]*=[ \t]*(${name})`, 'g'))
  return Object.fromEntries(
    [...pairs].map(([, key, value]) => [readNames(key!)[0], readValue(value!)]),
  )
}

const unquote = (raw: string): string =>
  raw.startsWith('"') ? (JSON.parse(raw) as string) : raw.slice(1, -1)

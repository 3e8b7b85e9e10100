import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'

/** An object, list or scalar in a text, from its first to behind its last character. */
export type JsonNode = {
  start: number
  end: number
  value: unknown
  /** Of an object only. */
  members?: Member[]
}

/** `start` is that of the name; `comma` is the place of the comma behind the value. */
type Member = { key: string; start: number; node: JsonNode; comma?: number }

const string = /"(?:[^"\\\n]|\\.)*"/y
const scalar = /[^\s,:[\]{}"/]+/y
const space = /[\s\uFEFF]*/y

/**
 * Reads JSON that may have comments, and commas at the end of objects and lists.
 *
 * @returns undefined for a text without a value.
 * @throws FormatError with the line that cannot be read
 */
export function parseJsonc(text: string): JsonNode | undefined {
  let at = 0

  function fail(missing: string): never {
    throw new FormatError(`line ${text.slice(0, at).split('\n').length}: ${missing} is missing`)
  }

  function take(pattern: RegExp): string {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0] ?? ''
    at += found.length
    return found
  }

  /** Goes over white space and comments to the next character. */
  function next(): string | undefined {
    for (;;) {
      take(space)
      const isLine = text.startsWith('//', at)
      if (!isLine && !text.startsWith('/*', at)) return text[at]
      const close = text.indexOf(isLine ? '\n' : '*/', at + 2)
      if (close === -1 && !isLine) fail('"*/"')
      at = close === -1 ? text.length : close + (isLine ? 1 : 2)
    }
  }

  function readNode(): JsonNode {
    const start = at
    if (text[at] === '{') return readObject(start)
    if (text[at] === '[') return readList(start)
    const raw = take(text[at] === '"' ? string : scalar)
    if (raw === '') fail('a value')
    try {
      return { start, end: at, value: JSON.parse(raw) as unknown }
    } catch {
      at = start
      return fail('a value of JSON')
    }
  }

  function readObject(start: number): JsonNode {
    const members: Member[] = []
    at++
    while (next() !== '}') {
      const keyStart = at
      const key = take(string)
      if (key === '' || next() !== ':') fail(key === '' ? 'a name in quotes' : '":"')
      at++
      next()
      const member: Member = { key: JSON.parse(key) as string, start: keyStart, node: readNode() }
      members.push(member)
      if (next() === ',') member.comma = at++
      else if (text[at] !== '}') fail('"," or "}"')
    }
    const value = Object.fromEntries(members.map(({ key, node }) => [key, node.value]))
    return { start, end: ++at, members, value }
  }

  function readList(start: number): JsonNode {
    const value: unknown[] = []
    at++
    while (next() !== ']') {
      value.push(readNode().value)
      if (next() === ',') at++
      else if (text[at] !== ']') fail('"," or "]"')
    }
    return { start, end: ++at, value }
  }

  if (next() === undefined) return undefined
  const root = readNode()
  if (next() !== undefined) fail('the end of the file')
  return root
}

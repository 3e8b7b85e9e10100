import { isDeepStrictEqual } from 'node:util'
import {
  FormatError,
  type FileFormat,
  type Path,
} from '#scripts/clients/connect/formats/file-format.ts'
import { parseJsonc, type JsonNode } from '#scripts/clients/connect/formats/jsonc-tree.ts'

/** JSON, also with comments and commas at the end. */
export const jsonc: FileFormat = {
  find(text, at) {
    const node = findNode(text, at)
    return node && text.slice(node.start, node.end)
  },
  set(text, at, raw) {
    const root = rootObject(text)
    if (!root) return createFile(text, nested(at, raw))
    let object: JsonNode = root
    for (const [depth, name] of at.entries()) {
      const node: JsonNode | undefined = lastMember(object, name)?.node
      if (!node) return insert(text, object, depth, [name, nested(at.slice(depth + 1), raw)])
      if (depth === at.length - 1) {
        return splice(text, node.start, node.end, indented(text, raw, depth + 1))
      }
      if (!node.members) {
        throw new FormatError(`"${at.slice(0, depth + 1).join('.')}" is not an object`)
      }
      object = node
    }
    return text
  },
  remove(text, at, kept) {
    let rest = text
    for (let length = at.length; length > kept; length--) {
      const node = findNode(rest, at.slice(0, length))
      if (!node || (length < at.length && node.members?.length !== 0)) break
      rest = removeMember(rest, findNode(rest, at.slice(0, length - 1))!, at[length - 1]!)
    }
    return rest
  },
  write: value => JSON.stringify(value, null, 2),
  read: raw => parseJsonc(raw)?.value,
  isSame: (one, other) => isDeepStrictEqual(parseJsonc(one)?.value, parseJsonc(other)?.value),
}

function rootObject(text: string): JsonNode | undefined {
  const root = parseJsonc(text)
  if (root && !root.members) throw new FormatError('it does not hold an object')
  return root
}

/** Of a name that stands twice the last counts, as in JSON.parse. */
const lastMember = (object: JsonNode, name: string) =>
  object.members?.findLast(({ key }) => key === name)

function findNode(text: string, at: Path): JsonNode | undefined {
  let node = rootObject(text)
  for (const name of at) node = node && lastMember(node, name)?.node
  return node
}

/** A file without a value, such as one of comments only, gets one. */
function createFile(text: string, raw: string): string {
  const lines = lineEnd(text)
  const gap = text.trim() !== '' && !text.endsWith('\n') ? lines : ''
  return `${text}${gap}${raw.replaceAll('\n', lines)}${lines}`
}

/** The path a, b and the value 1 are `{"a": {"b": 1}}`. */
const nested = (at: Path, raw: string): string =>
  at.length === 0
    ? raw
    : `{\n  ${`${JSON.stringify(at[0])}: ${nested(at.slice(1), raw)}`.replaceAll('\n', '\n  ')}\n}`

/** Text that is indented by two spaces, with the indentation and line ends of a file, from a depth on. */
function indented(text: string, raw: string, depth: number): string {
  const unit = indentUnit(text)
  const [first, ...others] = raw.split('\n')
  const rest = others.map(line => {
    const own = (line.length - line.trimStart().length) / 2
    return unit.repeat(depth + own) + line.trimStart()
  })
  return [first, ...rest].join(lineEnd(text))
}

/** The indentation of the first line that has one. */
function indentUnit(text: string): string {
  const line = text.split('\n', 200).find(line => /^[ \t]+["}]/.test(line)) ?? '  '
  return line.slice(0, line.length - line.trimStart().length) || '  '
}

const lineEnd = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')

const splice = (text: string, start: number, end: number, into: string): string =>
  text.slice(0, start) + into + text.slice(end)

/** Adds a member behind the last one of an object; a comment behind that one stays with it. */
function insert(
  text: string,
  { start, end, members }: JsonNode,
  depth: number,
  [name, raw]: [name: string, raw: string],
): string {
  const unit = indentUnit(text)
  const lines = lineEnd(text)
  const last = members!.at(-1)
  const inner = text.slice(start + 1, end - 1)
  const body = start + 1 + inner.trimEnd().length
  const tail = text.slice(body, end - 1)
  const sharesLine = last !== undefined && !inner.includes('\n')
  const before = sharesLine ? ' ' : lines + unit.repeat(depth + 1)
  const after = sharesLine || tail.includes('\n') ? tail : lines + unit.repeat(depth)
  const comma = last?.comma === undefined ? '' : ','
  const member = `${JSON.stringify(name)}: ${indented(text, raw, depth + 1)}${comma}`
  const grown = splice(text, body, end - 1, before + member + after)
  return last && !comma ? splice(grown, last.node.end, last.node.end, ',') : grown
}

/** Takes a member out, with its line and one comma; comments on other lines stay. */
function removeMember(text: string, object: JsonNode, name: string): string {
  const members = object.members!
  const index = members.findLastIndex(({ key }) => key === name)
  const { start, node, comma } = members[index]!
  const line = text.lastIndexOf('\n', start) + 1
  const isAlone = text.slice(line, start).trim() === ''
  const from = isAlone ? line : start
  const last = comma === undefined ? node.end : comma + 1
  const newline = text.indexOf('\n', last)
  const endsLine = newline !== -1 && text.slice(last, newline).trim() === ''
  const to = isAlone && endsLine ? newline + 1 : last
  const isEmptied =
    members.length === 1 &&
    text.slice(object.start + 1, from).trim() === '' &&
    text.slice(to, object.end - 1).trim() === ''
  if (isEmptied) return splice(text, object.start + 1, object.end - 1, '')
  const without = splice(text, from, to, '')
  const previous = members[index - 1]?.comma
  return comma === undefined && previous !== undefined
    ? splice(without, previous, previous + 1, '')
    : without
}

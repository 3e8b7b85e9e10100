import {
  applyEdits,
  format,
  getNodeValue,
  modify,
  parseTree,
  printParseErrorCode,
  type FormattingOptions,
  type Node,
  type ParseError,
} from 'jsonc-parser'
import {
  FormatError,
  lineEnd,
  type FileFormat,
  type Path,
} from '#scripts/clients/connect/formats/file-format.ts'

/** JSON, also with comments and commas at the end. */
export const jsonc: FileFormat = {
  get(text, at) {
    const node = findNode(readRoot(text), at)
    return node && (getNodeValue(node) as unknown)
  },
  set(text, at, value) {
    const root = readRoot(text)
    if (!root) return jsonc.set(`${text.trimEnd()}${text.trim() && lineEnd(text)}{}\n`, at, value)
    const node = findNode(root, at)
    if (node) {
      const { offset, length } = node
      return edit(text, { offset, length, content: JSON.stringify(value) })
    }
    const depth = at.findIndex((_, index) => !findNode(root, at.slice(0, index + 1)))
    const object = findNode(root, at.slice(0, depth))!
    if (object.type !== 'object') throw notAnObject(at.slice(0, depth))
    return insertFirst(text, object, nested(at.slice(depth), JSON.stringify(value)))
  },
  /** Objects on the way that are empty then go too, unless they were there before. */
  putBack(text, at, before) {
    const old = readRoot(before)
    const original = findNode(old, at)
    const node = findNode(readRoot(text), at)
    if (!node) return text
    if (original) {
      const content = before.slice(original.offset, original.offset + original.length)
      return applyEdits(text, [{ offset: node.offset, length: node.length, content }])
    }
    let rest = text
    for (let length = at.length; length > 0 && !findNode(old, at.slice(0, length)); length--) {
      const root = readRoot(rest)
      if (length < at.length && findNode(root, at.slice(0, length))?.children?.length) break
      rest = removeMember(rest, findNode(root, at.slice(0, length))!.parent!, at.slice(0, length))
    }
    return rest
  },
}

const notAnObject = (at: Path): FormatError =>
  new FormatError(
    at.length === 0 ? 'it does not hold an object' : `"${at.join('.')}" is not an object`,
  )

/** @returns undefined for a text without a value, such as one of comments only. */
function readRoot(text: string): Node | undefined {
  const errors: ParseError[] = []
  const options = { allowTrailingComma: true, allowEmptyContent: true }
  // The parser takes a byte order mark for a fault.
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, options)
  const [first] = errors
  if (first) {
    const line = text.slice(0, first.offset).split('\n').length
    throw new FormatError(`line ${line}: ${printParseErrorCode(first.error)}`)
  }
  if (root && root.type !== 'object') throw notAnObject([])
  return root
}

/** Finds a value. A name that stands twice is refused: programs read the last one, the parser finds the first. */
function findNode(root: Node | undefined, at: Path): Node | undefined {
  let node = root
  for (const name of at) {
    const [member, second] =
      node?.type === 'object'
        ? node.children!.filter(({ children }) => children![0]!.value === name)
        : []
    if (second) throw new FormatError(`"${name}" stands twice`)
    node = member?.children![1]
  }
  return node
}

/** Writes a member with its path: a, b and the value 1 give `"a": {"b": 1}`. */
const nested = ([name, ...others]: Path, raw: string): string =>
  `${JSON.stringify(name)}: ${others.length === 0 ? raw : `{${nested(others, raw)}}`}`

/**
 * Adds a member at the beginning of an object, where it has lines of its own: behind the last member it would come
 * between that one and its comment. A line comment behind the brace stays there.
 */
function insertFirst(text: string, object: Node, member: string): string {
  const start = object.offset + 1
  const comment = /^[ \t]*\/\/.*/.exec(text.slice(start))?.[0]
  const offset = start + (comment?.length ?? 0)
  const comma = object.children!.length > 0 ? ',' : ''
  const content = `${comment === undefined ? '' : lineEnd(text)}${member}${comma}`
  return edit(text, { offset, length: 0, content })
}

/** Removes a member with its comma and the white space of its lines; the comments around it stay. */
function removeMember(text: string, { offset, length }: Node, at: Path): string {
  const isLast = !/^\s*,/.test(text.slice(offset + length))
  const formattingOptions = formatting(text)
  if (isLast) return applyEdits(text, modify(text, [...at], undefined, { formattingOptions }))
  const before = text.slice(0, offset).replace(/(?<=\n)[ \t]+$/, '')
  return before + text.slice(offset + length).replace(/^\s*,(?:[ \t]*\r?\n)?/, '')
}

/** Applies a change and formats the new text like the rest; a text of one line stays one. */
function edit(text: string, change: { offset: number; length: number; content: string }): string {
  const grown = applyEdits(text, [change])
  if (!text.trim().includes('\n') && text.trim() !== '{}') return grown
  const restOfLine = /^.*/.exec(grown.slice(change.offset + change.content.length))![0]
  const behind = restOfLine.trim() === '' ? 0 : 1
  const range = { offset: change.offset - 1, length: change.content.length + 1 + behind }
  return applyEdits(grown, format(grown, range, formatting(text)))
}

/** Returns the format of a text: the indentation of its first indented line, and its line ends. */
function formatting(text: string): FormattingOptions {
  const indent = /^([ \t]+)["}]/m.exec(text)?.[1] ?? '  '
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol: lineEnd(text) }
}

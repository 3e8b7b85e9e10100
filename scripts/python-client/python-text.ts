/** Words that Python keeps for itself. */
const keywords = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for ' +
    'from global if import in is lambda nonlocal not or pass raise return try while with yield'
  ).split(' '),
)

/** `rotateKey` and `pageSize` as Python writes them; a keyword gets an underscore: `from_`. */
export function pythonName(name: string): string {
  const snake = name
    .replaceAll('-', '_')
    .replaceAll(/(?<=[a-z0-9])[A-Z]/g, letter => `_${letter}`)
    .toLowerCase()
  return keywords.has(snake) ? `${snake}_` : snake
}

/** Whether a field can be written as an attribute of a class. */
export const isIdentifier = (name: string): boolean =>
  /^[A-Za-z_]\w*$/.test(name) && !keywords.has(name)

export const capitalized = (name: string): string => name[0]!.toUpperCase() + name.slice(1)

/** `some_field` as the name of a type: `SomeField`. */
export const typeName = (name: string): string =>
  name
    .split(/[_-]/)
    .map(part => capitalized(part))
    .join('')

const lineWidthMax = 100

/** Wraps text at 100 characters: `first` stands before the first line, `next` before the others. */
export function wrapped(text: string, first: string, next: string): string[] {
  const lines: string[] = []
  let line = first
  let isEmpty = true
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (!isEmpty && line.length + word.length + 1 > lineWidthMax) {
      lines.push(line)
      line = next
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return isEmpty ? lines : [...lines, line]
}

/** Code of one line, or what stands between brackets. */
export type Code = string | BracketGroup
export type BracketGroup = { start: string; items: Code[]; end: string }

/** Lines of code, broken as Black does: after the bracket where that is enough, else after each item. */
export function layOut(code: Code, indent: string, comma = ''): string[] {
  const line = `${indent}${flat(code)}${comma}`
  if (typeof code === 'string' || line.length <= lineWidthMax) return [line]
  const deeper = `${indent}    `
  const items = `${deeper}${flatItems(code)}`
  const inner =
    items.length <= lineWidthMax ? [items] : code.items.flatMap(item => layOut(item, deeper, ','))
  return [`${indent}${code.start}`, ...inner, `${indent}${code.end}${comma}`]
}

const flat = (code: Code): string =>
  typeof code === 'string' ? code : `${code.start}${flatItems(code)}${code.end}`

const flatItems = ({ items }: BracketGroup): string => items.map(flat).join(', ')

/** A string as Python's literal. */
export const quoted = (text: string): string => JSON.stringify(text)

/** Text that may stand between `"""`. */
export const docText = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")

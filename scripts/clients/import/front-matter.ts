import { parseExactJson } from '#scripts/clients/import/json-values.ts'

/** A markdown document: the fields of its front matter, and what follows it byte for byte. */
type MarkdownDocument = { fields: Record<string, unknown>; body: string }

type Lines = { readonly lines: readonly string[]; at: number }

const depthMax = 32

/**
 * Splits a markdown document from its YAML front matter. Read are mappings, lists, flow collections (so
 * JSON too), quoted, plain and block texts; anchors and tags of YAML are not.
 *
 * @returns undefined for a document without front matter
 * @throws SyntaxError for front matter that is none of this.
 */
export function parseMarkdown(text: string): MarkdownDocument | undefined {
  const start = text.startsWith('\uFEFF') ? 1 : 0
  const opening = /^---[ \t]{0,9}\r?\n/.exec(text.slice(start, start + 20))
  if (!opening) return undefined
  const from = start + opening[0].length
  const closing = /^---[ \t]{0,9}(?:\r?\n|$)/m.exec(text.slice(from))
  if (!closing) return undefined
  const lines = text.slice(from, from + closing.index).split(/\r?\n/)
  const source = { lines, at: 0 }
  const fields = parseMapping(source, 0, 0)
  skipBlank(source)
  if (source.at < lines.length) throw new SyntaxError(`front matter, line ${source.at + 2}`)
  return { fields, body: text.slice(from + closing.index + closing[0].length) }
}

const indentOf = (line: string): number => line.length - line.trimStart().length
const isBlank = (line: string): boolean => line.trim() === '' || line.trimStart().startsWith('#')

function skipBlank(source: Lines): void {
  while (source.at < source.lines.length && isBlank(source.lines[source.at]!)) source.at++
}

/** The indentation of the next line with content; -1 at the end. */
function nextIndent(source: Lines): number {
  skipBlank(source)
  const line = source.lines[source.at]
  return line === undefined ? -1 : indentOf(line)
}

function parseMapping(source: Lines, indent: number, depth: number): Record<string, unknown> {
  if (depth > depthMax) throw new SyntaxError('front matter is nested too deeply')
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  while (nextIndent(source) === indent && !isItem(source.lines[source.at]!)) {
    const member = splitMember(source.lines[source.at]!.trim())
    if (!member) throw new SyntaxError(`front matter, line ${source.at + 2}`)
    source.at++
    fields[member.name] = parseMember(source, member.value, { indent, depth })
  }
  return { ...fields }
}

const isItem = (line: string): boolean => /^-(?:\s|$)/.test(line.trimStart())

/** Splits `name: value`; undefined for a line that is none. */
function splitMember(line: string): { name: string; value: string } | undefined {
  const quoted = /^"((?:[^"\\]|\\.){0,200})":(?:\s|$)/.exec(line)
  const end = quoted ? quoted[0].length : line.endsWith(':') ? line.length : line.indexOf(': ') + 1
  if (end <= 0) return undefined
  const name = quoted ? quoted[1]! : line.slice(0, end - 1).trim()
  return { name, value: line.slice(end).trim() }
}

type Position = { indent: number; depth: number }

function parseMember(source: Lines, value: string, { indent, depth }: Position): unknown {
  if (/^[|>][-+\d]{0,2}$/.test(value)) return parseBlockText(source, indent, value)
  const text = value.startsWith('#') ? '' : value
  if (text !== '') return parseFlow(joinContinued(source, text, indent))
  const next = nextIndent(source)
  if (next >= indent && isItem(source.lines[source.at]!)) return parseList(source, next, depth + 1)
  return next > indent ? parseMapping(source, next, depth + 1) : null
}

function parseList(source: Lines, indent: number, depth: number): unknown[] {
  if (depth > depthMax) throw new SyntaxError('front matter is nested too deeply')
  const items: unknown[] = []
  while (nextIndent(source) === indent && isItem(source.lines[source.at]!)) {
    const line = source.lines[source.at]!
    const content = line.trimStart().slice(1).trim()
    const member = /^["'[{]/.test(content) ? undefined : splitMember(content)
    if (member) {
      // A mapping that begins beside the dash goes on below, as far in as its first name.
      const inner = line.indexOf(content)
      const lines = source.lines as string[]
      lines[source.at] = `${' '.repeat(inner)}${content}`
      items.push(parseMapping(source, inner, depth + 1))
      continue
    }
    source.at++
    items.push(parseMember(source, content, { indent, depth }))
  }
  return items
}

/** `|` keeps the line breaks of a text, `>` folds them. */
function parseBlockText(source: Lines, indent: number, style: string): string {
  const taken: string[] = []
  while (source.at < source.lines.length) {
    const line = source.lines[source.at]!
    if (line.trim() !== '' && indentOf(line) <= indent) break
    taken.push(line)
    source.at++
  }
  const first = taken.find(line => line.trim() !== '')
  const lines = taken.map(line => line.slice(first === undefined ? 0 : indentOf(first)))
  return lines.join(style.startsWith('|') ? '\n' : ' ').trimEnd()
}

/** A value that goes on in the lines below, which are further in. */
function joinContinued(source: Lines, value: string, indent: number): string {
  const parts = [value]
  while (source.at < source.lines.length) {
    const line = source.lines[source.at]!
    const closes = /^[\]}]/.test(line.trimStart())
    if (line.trim() === '' || (indentOf(line) <= indent && !closes)) break
    parts.push(line.trim())
    source.at++
  }
  return parts.join(' ')
}

function parseFlow(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    const flow = new FlowReader(text)
    return flow.read()
  }
}

/** Reads flow collections and scalars of YAML. */
class FlowReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): unknown {
    const value = this.#value('', 0)
    const rest = this.#text.slice(this.#at).trim()
    if (rest !== '' && !rest.startsWith('#')) throw new SyntaxError(`front matter: ${rest}`)
    return value
  }

  #value(ends: string, depth: number): unknown {
    if (depth > depthMax) throw new SyntaxError('front matter is nested too deeply')
    this.#skip()
    const first = this.#text[this.#at]
    if (first === '[') return this.#list(depth)
    if (first === '{') return this.#mapping(depth)
    return first === '"' || first === "'" ? this.#quoted(first) : this.#plain(ends)
  }

  #list(depth: number): unknown[] {
    const items: unknown[] = []
    for (this.#at++; !this.#ends(']'); this.#comma()) items.push(this.#value(',]', depth + 1))
    return items
  }

  #mapping(depth: number): Record<string, unknown> {
    const fields: [string, unknown][] = []
    for (this.#at++; !this.#ends('}'); this.#comma()) {
      const name = String(this.#value(':,}', depth + 1))
      this.#skip()
      if (this.#text[this.#at] !== ':') throw new SyntaxError(`front matter: ${this.#text}`)
      this.#at++
      fields.push([name, this.#value(',}', depth + 1)])
    }
    return Object.fromEntries(fields)
  }

  #ends(bracket: string): boolean {
    this.#skip()
    if (this.#at >= this.#text.length) throw new SyntaxError(`front matter: ${this.#text}`)
    if (this.#text[this.#at] !== bracket) return false
    this.#at++
    return true
  }

  #comma(): void {
    this.#skip()
    if (this.#text[this.#at] === ',') this.#at++
  }

  #skip(): void {
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at++
  }

  #quoted(quote: string): string {
    let end = this.#at + 1
    for (; end < this.#text.length; end++) {
      if (quote === '"' && this.#text[end] === '\\') end++
      else if (this.#text[end] === quote && this.#text[end + 1] !== quote) break
      else if (this.#text[end] === quote) end++
    }
    if (end >= this.#text.length) throw new SyntaxError(`front matter: ${this.#text}`)
    const inner = this.#text.slice(this.#at + 1, end)
    this.#at = end + 1
    return quote === "'" ? inner.replaceAll("''", "'") : (JSON.parse(`"${inner}"`) as string)
  }

  #plain(ends: string): unknown {
    const start = this.#at
    while (this.#at < this.#text.length && !this.#isPlainEnd(ends)) this.#at++
    return toScalar(this.#text.slice(start, this.#at).trim())
  }

  #isPlainEnd(ends: string): boolean {
    const character = this.#text[this.#at]!
    if (character === '#' && this.#text[this.#at - 1] === ' ') return true
    if (!ends.includes(character)) return false
    // A colon ends a name only before a space: `https://…` goes on.
    return character !== ':' || /^(?:\s|$)/.test(this.#text.slice(this.#at + 1, this.#at + 2))
  }
}

function toScalar(text: string): unknown {
  if (text === '' || text === '~' || text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : text
}

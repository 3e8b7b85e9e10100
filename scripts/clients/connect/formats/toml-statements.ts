import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'

/** A header of a table, or a key with its value; `end` is behind its last character. */
export type Statement = {
  /** From the top of the file, also for a key inside a table. */
  path: string[]
  start: number
  end: number
  /** Of a key: where its value begins. */
  value?: number
}

const bareKey = /[\w-]+/y
const blanks = /[ \t]*/y
const basicString = /"(?:[^"\\\n]|\\.)*"/y
const literalString = /'[^'\n]*'/y
const other = /[^\s"'#[\]{},]+/y

/**
 * Finds the headers and keys of a TOML text, with values of any kind over any number of lines.
 *
 * @throws FormatError with the line that cannot be read
 */
export function parseToml(text: string): Statement[] {
  const scanner = new Scanner(text)
  const statements: Statement[] = []
  let table: string[] = []
  for (let next = scanner.skipToStatement(); next !== undefined; next = scanner.skipToStatement()) {
    const statement = next === '[' ? scanner.readHeader() : scanner.readEntry(table)
    if (statement.value === undefined) table = statement.path
    statements.push(statement)
  }
  return statements
}

/** Reads a TOML text from its beginning to its end. */
class Scanner {
  readonly #text: string
  #at: number

  constructor(text: string) {
    this.#text = text
    this.#at = text.startsWith('\uFEFF') ? 1 : 0
  }

  /** Skips blanks and comments; returns the first character of the next statement. */
  skipToStatement(): string | undefined {
    for (;;) {
      const next = this.#text[this.#at]
      if (next === '#') this.#skipComment()
      else if (next !== undefined && /\s/.test(next)) this.#at++
      else return next
    }
  }

  readHeader(): Statement {
    const start = this.#at
    this.#at += this.#text[start + 1] === '[' ? 2 : 1
    const path = this.#readKey()
    while (this.#text[this.#at] === ']') this.#at++
    return { path, start, end: this.#at }
  }

  /** @param table Path of the table that the key is in. */
  readEntry(table: readonly string[]): Statement {
    const start = this.#at
    const key = this.#readKey()
    if (this.#text[this.#at++] !== '=') this.#fail('"=" is missing')
    this.#take(blanks)
    const value = this.#at
    this.#readValue()
    const end = value + this.#text.slice(value, this.#at).trimEnd().length
    return { path: [...table, ...key], start, end, value }
  }

  #readKey(): string[] {
    const names: string[] = []
    do {
      if (this.#text[this.#at] === '.') this.#at++
      this.#take(blanks)
      const quoted = this.#take(basicString) || this.#take(literalString)
      const name = quoted === '' ? this.#take(bareKey) : unquote(quoted)
      if (name === '' && quoted === '') this.#fail('a key is missing')
      names.push(name)
      this.#take(blanks)
    } while (this.#text[this.#at] === '.')
    return names
  }

  /** Reads a value with all that its brackets hold. */
  #readValue(): void {
    let depth = 0
    const from = this.#at
    do {
      const next = this.#text[this.#at]
      if (next === undefined || (depth === 0 && (next === '\n' || next === '#'))) break
      if (next === '"' || next === "'") this.#readString()
      else if (next === '#') this.#skipComment()
      else if (this.#take(other) === '') {
        depth += '[{'.includes(next) ? 1 : ']}'.includes(next) ? -1 : 0
        this.#at++
      }
    } while (depth > 0 || !/[\r\n#]/.test(this.#text[this.#at] ?? '\n'))
    if (depth !== 0) this.#fail('a bracket is not closed')
    if (this.#text.slice(from, this.#at).trim() === '') this.#fail('a value is missing')
  }

  #readString(): void {
    const mark = this.#text.slice(this.#at, this.#at + 3)
    if (mark !== '"""' && mark !== "'''") {
      const pattern = mark.startsWith('"') ? basicString : literalString
      if (this.#take(pattern) === '') this.#fail('a string has no end')
      return
    }
    this.#at += 3
    while (!this.#text.startsWith(mark, this.#at)) {
      if (this.#at >= this.#text.length) this.#fail('a string has no end')
      this.#at += mark === '"""' && this.#text[this.#at] === '\\' ? 2 : 1
    }
    // Up to two quotation marks may stand before the closing ones.
    this.#at += 3
    while (this.#text[this.#at] === mark[0]) this.#at++
  }

  #skipComment(): void {
    const newline = this.#text.indexOf('\n', this.#at)
    this.#at = newline === -1 ? this.#text.length : newline
  }

  /** Reads what matches at this place: '' for nothing. */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += match.length
    return match
  }

  #fail(what: string): never {
    const line = this.#text.slice(0, this.#at).split('\n').length
    throw new FormatError(`line ${line}: ${what}`)
  }
}

/** The text of a string in quotation marks. */
export const unquote = (raw: string): string =>
  raw.startsWith('"') ? (JSON.parse(raw) as string) : raw.slice(1, -1)

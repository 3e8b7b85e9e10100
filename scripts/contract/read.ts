import { lexer, type Token, type Tokens } from 'marked'

/** Where something stands in the specification, as a fault names it. */
export type Place = { file: string; heading: string; part?: string; row?: string; column?: string }

/** A line of a table. */
export type Row = { place: Place; field: string; type: string; required: boolean; notes: string }

/** What stands under a `###` heading: a table, or the name of what is described elsewhere. */
export type Part = {
  place: Place
  /** `Body`, `Query` or a status. */
  name: string
  /** What the heading says in brackets: `open`, media types. */
  words: string[]
  /** A type cell, where the heading names one instead of bringing a table. */
  type: string | undefined
  rows: Row[]
}

/** What stands under a `##` heading: an endpoint or a resource. */
export type Chapter = {
  place: Place
  /** `POST /v1/memory/search`, or `Debt`. */
  title: string
  words: string[]
  paragraphs: string[]
  facts: Map<string, string>
  rows: Row[]
  parts: Part[]
}

/** An error that says where in the specification it is. */
export function fault({ file, heading, part, row, column }: Place, problem: string): Error {
  const places = [
    file,
    heading && `"${heading}"`,
    part && `"${part}"`,
    row && `row ${row}`,
    column && `column ${column}`,
  ]
  return new Error(`${places.filter(Boolean).join(', ')}: ${problem}`)
}

/**
 * Reads one page of the specification. Text before the first `##` heading is for people alone;
 * everything after it is data, and what is not understood is refused.
 *
 * @throws Error naming file, heading, row and column.
 */
export function chaptersOf(file: string, markdown: string): Chapter[] {
  const chapters: Chapter[] = []
  for (const token of lexer(markdown)) {
    const chapter = chapters.at(-1)
    if (token.type === 'heading') readHeading(file, token as Tokens.Heading, chapters)
    else if (chapter) readBlock(chapter, token)
    else if (token.type === 'table') {
      throw fault({ file, heading: '' }, 'a table stands before the first ## heading')
    }
  }
  return chapters
}

function readHeading(file: string, { depth, text }: Tokens.Heading, chapters: Chapter[]): void {
  if (depth === 1) return
  const chapter = chapters.at(-1)
  if (depth === 2) {
    const place = { file, heading: text }
    const match = /^([^()]+?)(?: \(([^)]+)\))?$/.exec(text)
    if (!match) throw fault(place, 'cannot read this heading')
    const [title, words] = [match[1]!, wordsOf(match[2])]
    chapters.push({ place, title, words, paragraphs: [], facts: new Map(), rows: [], parts: [] })
  } else if (depth === 3 && chapter) {
    const place = { ...chapter.place, part: text }
    const match = /^(Body|Query|2\d\d)(?: \(([^)]+)\))?(?:: `([^`]+)`)?$/.exec(text)
    if (!match) throw fault(place, 'a part is Body, Query or a status, then (words), then : `type`')
    const [, name, words, type] = match
    chapter.parts.push({ place, name: name!, words: wordsOf(words), type, rows: [] })
  } else {
    throw fault({ file, heading: text }, 'headings are #, ## and, under an endpoint, ###')
  }
}

function readBlock(chapter: Chapter, token: Token): void {
  const part = chapter.parts.at(-1)
  const { place, rows } = part ?? chapter
  if (token.type === 'space') return
  if (token.type === 'table') {
    if (rows.length > 0) throw fault(place, 'a second table under one heading')
    rows.push(...rowsOf(place, token as Tokens.Table))
  } else if (token.type === 'paragraph') {
    const { text } = token as Tokens.Paragraph
    if (text.startsWith('|')) throw fault(place, 'a table that Markdown does not read as one')
    if (!part) chapter.paragraphs.push(text.replaceAll('\n', ' '))
  } else if (token.type === 'list' && !part) {
    readFacts(chapter, token as Tokens.List)
  } else {
    throw fault(
      place,
      `a ${token.type} has no meaning here: ${JSON.stringify(token.raw.slice(0, 40))}`,
    )
  }
}

const factNames = ['Operation', 'Auth', 'Takes', 'Reads', 'Sends', 'Errors', 'Is']

function readFacts({ place, facts }: Chapter, { items }: Tokens.List): void {
  for (const { text } of items) {
    const match = /^(\w+): (.+)$/s.exec(text)
    const [name, value] = [match?.[1], match?.[2]?.replaceAll('\n', ' ')]
    if (!name || !value || !factNames.includes(name)) {
      throw fault(place, `cannot read "${text}": facts are ${factNames.join(', ')}, then a colon`)
    }
    if (facts.has(name)) throw fault(place, `${name} is said twice`)
    facts.set(name, value)
  }
}

const columns = ['Field', 'Type', 'Required', 'Notes']

function rowsOf(place: Place, { header, rows, raw }: Tokens.Table): Row[] {
  const names = header.map(({ text }) => text)
  if (names.join() !== columns.join()) {
    throw fault(place, `columns are ${columns.join(', ')}, not ${names.join(', ')}`)
  }
  // Markdown drops what stands right of the last column without a word: an unescaped | in a type.
  const lines = raw.trimEnd().split('\n').slice(2)
  return rows.map((cells, index) => {
    const [field = '', type = '', required = '', notes = ''] = cells.map(({ text }) => text)
    const at = { ...place, row: `${index + 1} (${field})` }
    const cellCount = (lines[index] ?? '').split(/(?<!\\)\|/).length - 2
    if (cellCount !== columns.length) {
      throw fault(
        at,
        `has ${cellCount} cells instead of ${columns.length}; write | in a type as \\|`,
      )
    }
    if (required !== 'yes' && required !== 'no') {
      throw fault({ ...at, column: 'Required' }, `is yes or no, not ${JSON.stringify(required)}`)
    }
    return {
      place: at,
      field: codeOf({ ...at, column: 'Field' }, field),
      type: codeOf({ ...at, column: 'Type' }, type),
      required: required === 'yes',
      notes,
    }
  })
}

function codeOf(place: Place, cell: string): string {
  const code = /^`([^`]+)`$/.exec(cell)?.[1]
  if (code === undefined) throw fault(place, `${JSON.stringify(cell)} is not one code span`)
  return code
}

const wordsOf = (words = ''): string[] => words.split(', ').filter(word => word !== '')

import { lexer, type Token, type Tokens } from 'marked'

/** A position in the specification, for error messages. */
export type SourcePosition = {
  file: string
  heading: string
  subsection?: string
  row?: string
  column?: string
}

/** A line of a table. */
export type FieldRow = {
  position: SourcePosition
  field: string
  type: string
  required: boolean
  notes: string
  /** Not part of the contract of the hosted service. */
  isOurs: boolean
  /** The service changes it by itself, so that what is sent back may be older. */
  moves: boolean
}

/** The content under a `###` heading: a table, or a type that is described elsewhere. */
export type Subsection = {
  position: SourcePosition
  /** `Body`, `Query` or a status. */
  name: string
  /** The words in brackets in the heading: `open`, media types. */
  modifiers: string[]
  /** A type cell, if the heading has one instead of a table. */
  type: string | undefined
  rows: FieldRow[]
}

/** The content under a `##` heading: an endpoint or a resource. */
export type Section = {
  position: SourcePosition
  /** `POST /v1/memory/search`, or `Debt`. */
  title: string
  modifiers: string[]
  paragraphs: string[]
  attributes: Map<string, string>
  rows: FieldRow[]
  subsections: Subsection[]
}

/** @throws Error with a position in the specification. */
export function fail(
  { file, heading, subsection, row, column }: SourcePosition,
  problem: string,
): never {
  const places = [
    file,
    heading && `"${heading}"`,
    subsection && `"${subsection}"`,
    row && `row ${row}`,
    column && `column ${column}`,
  ]
  throw new Error(`${places.filter(Boolean).join(', ')}: ${problem}`)
}

/**
 * Parses one page of the specification. Text before the first `##` heading is ignored; everything
 * after it must follow the format.
 *
 * @throws Error with file, heading, row and column.
 */
export function parseSections(file: string, markdown: string): Section[] {
  const chapters: Section[] = []
  for (const token of lexer(markdown)) {
    const chapter = chapters.at(-1)
    if (token.type === 'heading') readHeading(file, token as Tokens.Heading, chapters)
    else if (chapter) readBlock(chapter, token)
    else if (token.type === 'table') {
      fail({ file, heading: '' }, 'a table stands before the first ## heading')
    }
  }
  return chapters
}

function readHeading(file: string, { depth, text }: Tokens.Heading, chapters: Section[]): void {
  if (depth === 1) return
  const chapter = chapters.at(-1)
  if (depth === 2) {
    const place = { file, heading: text }
    const match = /^([^()]+?)(?: \(([^)]+)\))?$/.exec(text)
    if (!match) fail(place, 'cannot read this heading')
    const [title, words] = [match[1]!, splitModifiers(match[2])]
    chapters.push({
      position: place,
      title,
      modifiers: words,
      paragraphs: [],
      attributes: new Map(),
      rows: [],
      subsections: [],
    })
  } else if (depth === 3 && chapter) {
    const place = { ...chapter.position, subsection: text }
    const match = /^(Body|Query|2\d\d)(?: \(([^)]+)\))?(?:: `([^`]+)`)?$/.exec(text)
    if (!match) fail(place, 'a part is Body, Query or a status, then (words), then : `type`')
    const [, name, words, type] = match
    chapter.subsections.push({
      position: place,
      name: name!,
      modifiers: splitModifiers(words),
      type,
      rows: [],
    })
  } else {
    fail({ file, heading: text }, 'headings are #, ## and, under an endpoint, ###')
  }
}

function readBlock(chapter: Section, token: Token): void {
  const part = chapter.subsections.at(-1)
  const { position, rows } = part ?? chapter
  if (token.type === 'space') return
  if (token.type === 'table') {
    if (rows.length > 0) fail(position, 'a second table under one heading')
    rows.push(...readRows(position, token as Tokens.Table))
  } else if (token.type === 'paragraph') {
    const { text } = token as Tokens.Paragraph
    if (text.startsWith('|')) fail(position, 'a table that Markdown does not read as one')
    if (!part) chapter.paragraphs.push(text.replaceAll('\n', ' '))
  } else if (token.type === 'list' && !part) {
    readAttributes(chapter, token as Tokens.List)
  } else {
    fail(position, `a ${token.type} has no meaning here: ${JSON.stringify(token.raw.slice(0, 40))}`)
  }
}

const attributeNames = ['Operation', 'Effect', 'Auth', 'Takes', 'Reads', 'Sends', 'Errors', 'Is']

function readAttributes({ position, attributes }: Section, { items }: Tokens.List): void {
  for (const { text } of items) {
    const match = /^(\w+): (.+)$/s.exec(text)
    const [name, value] = [match?.[1], match?.[2]?.replaceAll('\n', ' ')]
    if (!name || !value || !attributeNames.includes(name)) {
      fail(position, `cannot read "${text}": facts are ${attributeNames.join(', ')}, then a colon`)
    }
    if (attributes.has(name)) fail(position, `${name} is said twice`)
    attributes.set(name, value)
  }
}

const columns = ['Field', 'Type', 'Required', 'Notes']

function readRows(place: SourcePosition, { header, rows, raw }: Tokens.Table): FieldRow[] {
  const names = header.map(({ text }) => text)
  if (names.join() !== columns.join()) {
    fail(place, `columns are ${columns.join(', ')}, not ${names.join(', ')}`)
  }
  // Markdown ignores cells right of the last column: an unescaped | in a type.
  const lines = raw.trimEnd().split('\n').slice(2)
  return rows.map((cells, index) => {
    const [field = '', type = '', required = '', notes = ''] = cells.map(({ text }) => text)
    const at = { ...place, row: `${index + 1} (${field})` }
    const marks = splitModifiers(fieldMarks.exec(field)?.[1])
    const cellCount = (lines[index] ?? '').split(/(?<!\\)\|/).length - 2
    if (cellCount !== columns.length) {
      fail(at, `has ${cellCount} cells instead of ${columns.length}; write | in a type as \\|`)
    }
    if (required !== 'yes' && required !== 'no') {
      fail({ ...at, column: 'Required' }, `is yes or no, not ${JSON.stringify(required)}`)
    }
    return {
      position: at,
      field: unwrapCodeSpan({ ...at, column: 'Field' }, field.replace(fieldMarks, '')),
      type: unwrapCodeSpan({ ...at, column: 'Type' }, type),
      required: required === 'yes',
      notes,
      isOurs: marks.includes('ours'),
      moves: marks.includes('moves'),
    }
  })
}

/** Behind the name of a field: whether it is not part of the contract of the hosted service, and moves by itself. */
const fieldMarks = / \((ours|moves|ours, moves)\)$/

function unwrapCodeSpan(place: SourcePosition, cell: string): string {
  const code = /^`([^`]+)`$/.exec(cell)?.[1]
  if (code === undefined) fail(place, `${JSON.stringify(cell)} is not one code span`)
  return code
}

const splitModifiers = (words = ''): string[] => words.split(', ').filter(word => word !== '')

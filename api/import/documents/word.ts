import type { DocumentReader, Paragraph } from '#api/import/documents/document.ts'
import type { ElementHandler } from '#api/import/documents/markup.ts'
import {
  drawnId,
  openPackage,
  type DrawnPicture,
  type Package,
} from '#api/import/documents/package.ts'
import type { Losses } from '#api/import/draft.ts'

/** Parts beside the text, and what their text stands under. */
const notes = { footnotes: 'footnotes', endnotes: 'endnotes', comments: 'comments' }

/** Reads a DOCX (ECMA-376, part 1, 17): headings name the sections; notes and comments follow the text. */
export const readWord: DocumentReader = async function* (document, losses) {
  const parts = await openPackage(document)
  losses.add('headers and footers', parts.paths(/^word\/(?:header|footer)\d*\.xml$/).length)
  yield* await readPart(parts, 'word/document.xml', await headingStyles(parts), losses)
  for (const [part, section] of Object.entries(notes)) {
    const found = await readPart(parts, `word/${part}.xml`, new Set(), losses)
    for (const paragraph of found) yield { ...paragraph, section }
  }
}

/** The ids of the styles of headings; their names are English in every language of Word. */
async function headingStyles(parts: Package): Promise<ReadonlySet<string>> {
  const headings = new Set<string>()
  let style = ''
  await parts.read('word/styles.xml', {
    open(element, attributes) {
      if (element === 'style') style = attributes['w:styleId'] ?? ''
      if (element === 'name' && /^(?:heading \d|title)$/i.test(attributes['w:val'] ?? ''))
        headings.add(style)
    },
  })
  return headings
}

async function readPart(
  parts: Package,
  path: string,
  headings: ReadonlySet<string>,
  losses: Losses,
): Promise<Paragraph[]> {
  const paragraphs: Paragraph[] = []
  const drawn: DrawnPicture[] = []
  let drawings = 0
  let section: string | undefined
  let text = ''
  let isHeading = false
  /** Open elements that say again what stands before them, and open cells of tables. */
  let repeated = 0
  let cells = 0
  let isText = false
  const end = (): void => {
    const line = text.trim()
    text = ''
    if (line === '') return
    if (isHeading) section = line
    paragraphs.push({ text: line, ...(section !== undefined && { section }) })
  }
  const handler: ElementHandler = {
    open(name, attributes) {
      if (name === 'Fallback') repeated++
      if (repeated > 0) return
      if (name === 't') isText = true
      else if (name === 'tab') text += '\t'
      else if (name === 'br' || name === 'cr') text += '\n'
      else if (name === 'pStyle') isHeading = headings.has(attributes['w:val'] ?? '')
      else if (name === 'tc') {
        if (text.trim() !== '') text = `${text.trimEnd()} | `
        cells++
      } else if (name === 'drawing' || name === 'pict') drawings++
      const id = drawnId(name, attributes)
      if (id !== undefined) drawn.push({ id, ...(section !== undefined && { section }) })
    },
    text(part) {
      if (isText) text += part
    },
    close(name) {
      if (name === 'Fallback') repeated--
      if (repeated > 0) return
      if (name === 't') isText = false
      else if (name === 'tc') cells--
      else if (name === 'tr') {
        if (cells === 0) end()
      } else if (name === 'p') {
        if (cells === 0) end()
        else if (text !== '' && !text.endsWith(' ')) text += ' '
        isHeading = false
      }
    },
  }
  await parts.read(path, handler)
  end()
  const pictures = await parts.picturesOf(path, drawn)
  losses.add('pictures', drawings - pictures.length)
  return [...paragraphs, ...pictures]
}

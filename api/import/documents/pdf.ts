import { getDocumentProxy } from 'unpdf'
import { CharacterMaps } from '#api/import/documents/character-maps.ts'
import {
  documentBounds,
  type DocumentReader,
  type Paragraph,
} from '#api/import/documents/document.ts'
import { Refusal } from '#shared/core/errors.ts'

type Proxy = Awaited<ReturnType<typeof getDocumentProxy>>
type TextItem = { str: string; hasEOL: boolean; height: number; transform: number[] }

/** Reads a PDF (ISO 32000) page by page. A page without text is counted: as a rule it is a scan. */
export const readPdf: DocumentReader = async function* ({ bytes, name }, losses) {
  const pdf = await open(bytes, name)
  const pages = Math.min(pdf.numPages, documentBounds.pages)
  losses.add(`pages after the first ${documentBounds.pages}`, pdf.numPages - pages)
  for (let page = 1; page <= pages; page++) {
    const paragraphs = await readPage(pdf, page).catch(() => undefined)
    if (!paragraphs) losses.add('damaged pages')
    else if (paragraphs.length === 0) losses.add('pages without text, such as scans')
    for (const text of paragraphs ?? []) yield { text, page } satisfies Paragraph
  }
}

async function open(bytes: Uint8Array, name: string): Promise<Proxy> {
  try {
    return await getDocumentProxy(bytes, {
      verbosity: 0,
      stopAtErrors: false,
      useSystemFonts: false,
      BinaryDataFactory: CharacterMaps,
      cMapPacked: false,
    })
  } catch (error) {
    const { name: kind, message } = error as Error
    throw kind === 'PasswordException'
      ? new Refusal(
          'invalid',
          `${name} is encrypted`,
          'Save it without its password, and send that',
        )
      : new Refusal(
          'invalid',
          `${name} is no PDF that can be read: ${message}`,
          'Save it as PDF again',
        )
  }
}

async function readPage(pdf: Proxy, number: number): Promise<string[]> {
  const page = await pdf.getPage(number)
  const { items } = await page.getTextContent()
  page.cleanup()
  return toParagraphs(items.filter(item => 'str' in item))
}

/** A line further below the one before than this many heights begins a paragraph. */
const paragraphGap = 1.8

/** Joins the lines of a page to paragraphs, by their distance. */
function toParagraphs(items: readonly TextItem[]): string[] {
  const paragraphs: string[] = []
  let text = ''
  let line = ''
  let lastY: number | undefined
  const endLine = (): void => {
    // A word that is divided at the end of a line.
    const joined = /\p{L}-$/u.test(text) && /^\p{Ll}/u.test(line)
    text = joined ? text.slice(0, -1) + line : text === '' ? line : `${text} ${line}`
    line = ''
  }
  const endParagraph = (): void => {
    if (text.trim() !== '') paragraphs.push(text.replaceAll(/\s+/g, ' ').trim())
    text = ''
  }
  for (const { str, hasEOL, height, transform } of items) {
    const y = transform[5]!
    if (line === '' && str.trim() !== '') {
      const isFar = lastY !== undefined && Math.abs(lastY - y) > paragraphGap * Math.max(height, 1)
      if (isFar) endParagraph()
      lastY = y
    }
    line += str
    if (hasEOL && line.trim() !== '') endLine()
  }
  if (line.trim() !== '') endLine()
  endParagraph()
  return paragraphs
}

import { isZip, readZip } from '#api/import/archive.ts'
import type { DocumentBytes, DocumentReader, Paragraph } from '#api/import/documents/document.ts'
import { pictureType } from '#api/import/documents/pictures.ts'
import { toPieces, type Piece } from '#api/import/documents/pieces.ts'
import type { Losses } from '#api/import/draft.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A process reads one document: what the others need is not loaded. */
const readers = {
  pdf: async () => (await import('#api/import/documents/pdf.ts')).readPdf,
  docx: async () => (await import('#api/import/documents/word.ts')).readWord,
  pptx: async () => (await import('#api/import/documents/slides.ts')).readSlides,
  xlsx: async () => (await import('#api/import/documents/sheets.ts')).readSheets,
  html: async () => (await import('#api/import/documents/markup.ts')).readHtml,
  markdown: async () => (await import('#api/import/documents/markdown.ts')).readMarkdown,
  separated: async () => (await import('#api/import/documents/plain-text.ts')).readSeparated,
  text: async () => (await import('#api/import/documents/plain-text.ts')).readPlainText,
  image: async () => (await import('#api/import/documents/image.ts')).readImage,
} satisfies Record<string, () => Promise<DocumentReader>>

/** What a document was read as. */
type DocumentKind = keyof typeof readers | 'mail'

/** What is counted while a document is read. */
export type DocumentReading = { kind?: DocumentKind; pages: Set<number> }

/**
 * Reads a document as pieces, each of which becomes a memory.
 *
 * @param reading receives its kind and its pages with text
 * @throws Refusal `invalid` for one that is empty, encrypted, damaged or without any text; `unsupported` for another kind;
 *   `too-large` for one that grows without bound
 */
export async function* readDocument(
  document: DocumentBytes,
  losses: Losses,
  reading: DocumentReading,
): AsyncGenerator<Piece> {
  reading.kind = await kindOf(document)
  for await (const piece of toPieces(readParagraphs(document, losses, 1), losses)) {
    if (piece.page !== undefined && !piece.picture) reading.pages.add(piece.page)
    yield piece
  }
}

/** @param level how many documents it stands in, with itself */
async function* readParagraphs(
  document: DocumentBytes,
  losses: Losses,
  level: number,
): AsyncGenerator<Paragraph> {
  const kind = await kindOf(document)
  if (kind === 'mail') {
    const { readMail } = await import('#api/import/documents/mail.ts')
    yield* readMail(document, losses, level, (attached, within) =>
      readParagraphs(attached, losses, within),
    )
  } else yield* (await readers[kind]())(document, losses)
}

const kindsByEnding: Readonly<Record<string, DocumentKind>> = {
  eml: 'mail',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  md: 'markdown',
  markdown: 'markdown',
  csv: 'separated',
  tsv: 'separated',
}

const kindsByMediaType: Readonly<Record<string, DocumentKind>> = {
  'message/rfc822': 'mail',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'text/markdown': 'markdown',
  'text/csv': 'separated',
  'text/tab-separated-values': 'separated',
}

/** Tells the kind of a document: by its bytes where they say it, else by its ending, its media type, and its first words. */
async function kindOf({ bytes, name, mediaType, pictures }: DocumentBytes): Promise<DocumentKind> {
  if (bytes.length === 0) throw new Refusal('invalid', `${name} is empty`)
  const start = new TextDecoder('windows-1252').decode(bytes.subarray(0, 1024))
  if (pictures && pictureType(bytes)) return 'image'
  if (start.includes('%PDF-')) return 'pdf'
  if (await isZip(new Blob([bytes.subarray(0, 4)]))) return kindOfArchive(bytes, name)
  if (bytes[0] === 0xd0 && bytes[1] === 0xcf && bytes[2] === 0x11 && bytes[3] === 0xe0)
    throw new Refusal(
      'unsupported',
      `${name} is an encrypted document of Office, or one of before 2007`,
      'Save it without a password as .docx, .pptx or .xlsx',
    )
  const isWide = /^(?:ÿþ|þÿ)/.test(start)
  // oxlint-disable-next-line no-control-regex -- text has none of these
  if (!isWide && /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(start))
    throw new Refusal(
      'unsupported',
      `${name} is no text, and of no kind that can be read`,
      kindsHint,
    )
  if (start.startsWith('{\\rtf')) throw new Refusal('unsupported', `${name} is RTF`, kindsHint)
  const byName =
    kindsByEnding[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''] ?? kindsByMediaType[mediaType]
  if (byName) return byName
  if (/^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*<(?:!doctype html|html)\b/i.test(start))
    return 'html'
  const isMail = /^(?:received|return-path|delivered-to|from|date|message-id|mime-version): /i.test(
    start,
  )
  return isMail && /^(?:from|to|subject): /im.test(start) ? 'mail' : 'text'
}

async function kindOfArchive(bytes: Uint8Array<ArrayBuffer>, name: string): Promise<DocumentKind> {
  const files = await readZip(new Blob([bytes])).catch((error: unknown) => {
    throw new Refusal(
      'invalid',
      `${name} is no archive that can be read: ${(error as Error).message}`,
    )
  })
  const names = new Set(files.map(file => file.name))
  if (names.has('word/document.xml')) return 'docx'
  if (names.has('ppt/presentation.xml')) return 'pptx'
  if (names.has('xl/workbook.xml')) return 'xlsx'
  throw new Refusal(
    'unsupported',
    `${name} is an archive, and no document`,
    'Unpack it, and send its files one by one',
  )
}

const kindsHint =
  'Send PDF, DOCX, PPTX, XLSX, HTML, Markdown, mail (EML), CSV or plain text; of a picture send its text'

import { zipOf } from '#test/support/samples/foreign-exports.ts'

/** Documents as programs write them, made by hand: small, with what is odd in real ones. */

const xml = (body: string): string =>
  `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n${body}`
const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** A font that is not in the file, and numbers its letters by a table of this name. */
type NamedTable = { table: string; collection: string; encode(text: string): Buffer }

type PdfOptions = { encrypted?: boolean; version?: string; named?: NamedTable }

/** A PDF with one list of lines for each page, in Helvetica; a line is 14 points below the one before, an empty one a gap. */
export function pdfOf(
  pages: readonly (readonly string[])[],
  { encrypted = false, version = '1.7', named }: PdfOptions = {},
): Buffer {
  const objects: string[] = []
  const kids = pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ')
  objects.push(
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`,
  )
  objects.push(
    named
      ? `<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /${named.table} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /F /CIDSystemInfo << /Registry (Adobe) /Ordering (${named.collection}) /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor /FontName /F /Flags 4 >> >>] >>`
      : '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  )
  const written = (line: string): string =>
    named
      ? `<${named.encode(line).toString('hex')}>`
      : `(${line.replaceAll(/[()\\]/g, String.raw`\$&`)})`
  for (const [index, lines] of pages.entries()) {
    const shown = lines.map(line => `${written(line)} Tj T*`)
    const stream = `BT /F1 12 Tf 14 TL 60 780 Td ${shown.join(' ')} ET`
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + index * 2} 0 R >>`,
      `<< /Length ${Buffer.byteLength(stream, 'latin1')} >>\nstream\n${stream}\nendstream`,
    )
  }
  let text = `%PDF-${version}\n`
  const offsets: number[] = []
  for (const [index, object] of objects.entries()) {
    offsets.push(Buffer.byteLength(text, 'latin1'))
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
  }
  const start = Buffer.byteLength(text, 'latin1')
  const rows = offsets.map(offset => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const hash = '41'.repeat(32)
  const secret = encrypted
    ? ` /Encrypt << /Filter /Standard /V 1 /R 2 /O <${hash}> /U <${hash}> /P -4 >> /ID [<${hash}> <${hash}>]`
    : ''
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R${secret} >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(text, 'latin1')
}

const relationships = (targets: readonly string[]): string =>
  xml(
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${targets
      .map((target, index) => `<Relationship Id="rId${index + 1}" Type="t" Target="${target}"/>`)
      .join('')}</Relationships>`,
  )

export type WordParagraph =
  | string
  | { heading: string }
  | { rows: readonly (readonly string[])[] }
  | { raw: string }

const wordText = (text: string): string =>
  `<w:r><w:t xml:space="preserve">${escape(text)}</w:t></w:r>`

function wordParagraph(paragraph: WordParagraph): string {
  if (typeof paragraph === 'string') return `<w:p>${wordText(paragraph)}</w:p>`
  if ('raw' in paragraph) return paragraph.raw
  if ('heading' in paragraph)
    return `<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>${wordText(paragraph.heading)}</w:p>`
  const rows = paragraph.rows.map(
    cells =>
      `<w:tr>${cells.map(cell => `<w:tc><w:p>${wordText(cell)}</w:p></w:tc>`).join('')}</w:tr>`,
  )
  return `<w:tbl>${rows.join('')}</w:tbl>`
}

/** A DOCX, as a German Word names its styles. */
export const docxOf = (
  paragraphs: readonly WordParagraph[],
  more: Record<string, string | Buffer> = {},
): Buffer =>
  zipOf({
    '[Content_Types].xml': xml('<Types/>'),
    'word/styles.xml': xml(
      '<w:styles xmlns:w="w"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>',
    ),
    'word/document.xml': xml(
      `<w:document xmlns:w="w"><w:body>${paragraphs.map(wordParagraph).join('')}</w:body></w:document>`,
    ),
    ...more,
  })

/** A paragraph of a DOCX that shows a picture by the id of its relationship. */
export const drawn = (id: string): WordParagraph => ({
  raw: `<w:p><w:r><w:drawing><a:blip r:embed="${id}"/></w:drawing></w:r></w:p>`,
})

const starts = {
  png: '\x89PNG\r\n\x1a\n',
  jpeg: '\xff\xd8\xff\xe0',
  gif: 'GIF89a',
  webp: 'RIFF\0\0\0\0WEBP',
  tiff: 'II*\0',
}

/** Bytes that begin like a picture of a type; one is another by its name. */
export const pictureOf = (type: keyof typeof starts, name: string, bytes = 5_000): Buffer =>
  Buffer.concat([Buffer.from(starts[type] + name, 'latin1'), Buffer.alloc(bytes)]).subarray(
    0,
    bytes,
  )

const slide = (texts: readonly string[], drawn = ''): string =>
  xml(
    `<p:sld xmlns:p="p" xmlns:a="a"><p:txBody>${texts
      .map(text => `<a:p><a:r><a:t>${escape(text)}</a:t></a:r></a:p>`)
      .join('')}<a:p><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p></p:txBody>${drawn}</p:sld>`,
  )

/** A PPTX whose slides lie in the archive in another order than they are shown in; each may have notes. */
export const pptxOf = (
  slides: readonly { texts: readonly string[]; notes?: string; drawn?: string }[],
  more: Record<string, string | Buffer> = {},
): Buffer => {
  const parts: Record<string, string> = {}
  for (const [index, { texts, notes, drawn }] of [...slides.entries()].reverse()) {
    parts[`ppt/slides/slide${index + 10}.xml`] = slide(texts, drawn)
    if (notes === undefined) continue
    parts[`ppt/slides/_rels/slide${index + 10}.xml.rels`] = relationships([
      `../notesSlides/notes${index}.xml`,
    ])
    parts[`ppt/notesSlides/notes${index}.xml`] = slide([notes])
  }
  return zipOf({
    ...parts,
    'ppt/_rels/presentation.xml.rels': relationships(
      slides.map((_, index) => `slides/slide${index + 10}.xml`),
    ),
    'ppt/presentation.xml': xml(
      `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>${slides
        .map((_, index) => `<p:sldId r:id="rId${index + 1}"/>`)
        .join('')}</p:sldIdLst></p:presentation>`,
    ),
    ...more,
  })
}

type Cell = string | number | boolean | { day: number }

/** An XLSX with sheets by name; texts are shared, `{ day }` is a number in a format of days. */
export const xlsxOf = (sheets: Readonly<Record<string, readonly (readonly Cell[])[]>>): Buffer => {
  const shared: string[] = []
  const cellOf = (cell: Cell): string => {
    if (typeof cell === 'string') return `<c t="s"><v>${shared.push(cell) - 1}</v></c>`
    if (typeof cell === 'boolean') return `<c t="b"><v>${Number(cell)}</v></c>`
    return typeof cell === 'number' ? `<c><v>${cell}</v></c>` : `<c s="1"><v>${cell.day}</v></c>`
  }
  const parts = Object.fromEntries(
    Object.values(sheets).map((rows, index) => [
      `xl/worksheets/sheet${index + 1}.xml`,
      xml(
        `<worksheet><sheetData>${rows
          .map(cells => `<row>${cells.map(cellOf).join('')}</row>`)
          .join('')}</sheetData></worksheet>`,
      ),
    ]),
  )
  return zipOf({
    'xl/workbook.xml': xml(
      `<workbook xmlns:r="r"><sheets>${Object.keys(sheets)
        .map((name, index) => `<sheet name="${escape(name)}" r:id="rId${index + 1}"/>`)
        .join('')}</sheets></workbook>`,
    ),
    'xl/_rels/workbook.xml.rels': relationships(
      Object.keys(sheets).map((_, index) => `worksheets/sheet${index + 1}.xml`),
    ),
    'xl/styles.xml': xml(
      '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    ),
    'xl/sharedStrings.xml': xml(
      `<sst>${shared.map(text => `<si><t>${escape(text)}</t></si>`).join('')}</sst>`,
    ),
    ...parts,
  })
}

type MailParts = {
  subject: string
  text: string
  attachments?: readonly { name: string; type: string; bytes: Buffer | string }[]
}

/** A mail with a text and attachments. */
export function mailOf({ subject, text, attachments = [] }: MailParts): Buffer {
  const head = `From: Ines <ines@example.com>\r\nTo: Ada <ada@example.com>\r\nDate: Tue, 03 Mar 2026 10:00:00 +0000\r\nSubject: ${subject}\r\nMIME-Version: 1.0\r\n`
  if (attachments.length === 0)
    return Buffer.from(`${head}Content-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n`)
  const border = `part-${subject.length}-${text.length}`
  const parts = attachments.map(({ name, type, bytes }) => {
    const isMail = type === 'message/rfc822'
    const body = isMail
      ? bytes.toString()
      : Buffer.from(bytes).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
    const encoding = isMail ? '8bit' : 'base64'
    return `--${border}\r\nContent-Type: ${type}; name="${name}"\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`
  })
  return Buffer.from(
    `${head}Content-Type: multipart/mixed; boundary="${border}"\r\n\r\n--${border}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n${parts.join('')}--${border}--\r\n`,
  )
}

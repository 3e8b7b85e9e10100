import type { DocumentReader, Paragraph } from '#api/import/documents/document.ts'
import { openPackage, type Package } from '#api/import/documents/package.ts'

/** Formats of ECMA-376, part 1, 18.8.30 that write a number as a day or a time. */
const isBuiltInDate = (id: number): boolean => (id >= 14 && id <= 22) || (id >= 45 && id <= 47)
/** Quoted words and colours are taken out first. */
const isDateFormat = (code: string): boolean =>
  /[ymdhs]/i.test(code.replaceAll(/"[^"]*"?|\[[^\]]*\]?|\\./g, ''))

/** Reads an XLSX (ECMA-376, part 1, 18): a section for each sheet, a paragraph for each row, its cells divided by bars. */
export const readSheets: DocumentReader = async function* (document, losses) {
  const parts = await openPackage(document)
  const main = 'xl/workbook.xml'
  const targets = await parts.targetsOf(main)
  const sheets: { name: string; path: string }[] = []
  let isFrom1904 = false
  await parts.read(main, {
    open(element, attributes) {
      if (element === 'workbookPr')
        isFrom1904 = ['1', 'true'].includes(attributes['date1904'] ?? '')
      const path = element === 'sheet' ? targets.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) sheets.push({ name: attributes['name'] ?? '', path })
    },
  })
  losses.add('pictures', parts.paths(/^xl\/media\//).length)
  losses.add('charts', parts.paths(/^xl\/charts\/chart\d*\.xml$/).length)
  for (const path of parts.paths(/^xl\/comments.*\.xml$/))
    await parts.read(path, { open: name => void (name === 'comment' && losses.add('comments')) })
  const words = { texts: await sharedTexts(parts), dates: await dateStyles(parts), isFrom1904 }
  for (const { name, path } of sheets) {
    const rows = await readRows(parts, path, words)
    for (const [index, text] of rows.entries())
      yield { text, section: name, ...(index === 0 && { isHead: true }) } satisfies Paragraph
  }
}

/** Texts that cells name by their number. */
async function sharedTexts(parts: Package): Promise<string[]> {
  const texts: string[] = []
  let text = ''
  let isText = false
  let isReading = false
  await parts.read('xl/sharedStrings.xml', {
    open(name) {
      if (name === 'si') text = ''
      if (name === 't') isText = !isReading
      // How a name is spoken is said beside it.
      if (name === 'rPh') isReading = true
    },
    text(part) {
      if (isText) text += part
    },
    close(name) {
      if (name === 't') isText = false
      if (name === 'rPh') isReading = false
      if (name === 'si') texts.push(text)
    },
  })
  return texts
}

/** Which styles of cells write a day or a time. */
async function dateStyles(parts: Package): Promise<boolean[]> {
  const custom = new Map<number, boolean>()
  const styles: boolean[] = []
  let isOfCells = false
  await parts.read('xl/styles.xml', {
    open(name, { numFmtId, formatCode }) {
      const id = Number(numFmtId)
      if (name === 'numFmt') custom.set(id, isDateFormat(formatCode ?? ''))
      if (name === 'cellXfs') isOfCells = true
      if (name === 'xf' && isOfCells) styles.push(custom.get(id) ?? isBuiltInDate(id))
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false
    },
  })
  return styles
}

type Words = { texts: readonly string[]; dates: readonly boolean[]; isFrom1904: boolean }

async function readRows(parts: Package, path: string, words: Words): Promise<string[]> {
  const rows: string[] = []
  let cells: string[] = []
  let cell = { type: '', style: 0, value: '' }
  let isValue = false
  await parts.read(path, {
    open(name, attributes) {
      if (name === 'row') cells = []
      if (name === 'c')
        cell = { type: attributes['t'] ?? '', style: Number(attributes['s'] ?? 0), value: '' }
      if (name === 'v' || name === 't') isValue = true
    },
    text(part) {
      if (isValue) cell.value += part
    },
    close(name) {
      if (name === 'v' || name === 't') isValue = false
      if (name === 'c' && cell.value !== '') cells.push(writeCell(cell, words))
      if (name === 'row' && cells.length > 0) rows.push(cells.join(' | '))
    },
  })
  return rows
}

function writeCell(
  { type, style, value }: { type: string; style: number; value: string },
  { texts, dates, isFrom1904 }: Words,
): string {
  if (type === 's') return (texts[Number(value)] ?? '').trim()
  if (type === 'b') return value === '1' ? 'true' : 'false'
  const number = Number(value)
  if (type !== '' && type !== 'n') return value.trim()
  if (dates[style] && Number.isFinite(number)) return writeDate(number, isFrom1904)
  // As sheets show it: 48.4 is stored as 48.400000000000006.
  return /\.\d{12,}$/.test(value) ? String(Number(number.toPrecision(15))) : value
}

const dayMs = 86_400_000

/** Days since 30 December 1899, or since 1 January 1904; below 1 a time of day. */
function writeDate(days: number, isFrom1904: boolean): string {
  const ms =
    Date.UTC(isFrom1904 ? 1904 : 1899, isFrom1904 ? 0 : 11, isFrom1904 ? 1 : 30) +
    Math.round(days * dayMs)
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return String(days)
  const [day, time] = date.toISOString().split('T') as [string, string]
  const clock = time.slice(0, time.startsWith('00:00:00') ? 0 : time.slice(6, 8) === '00' ? 5 : 8)
  if (days < 1) return clock || '00:00'
  return clock === '' ? day : `${day} ${clock}`
}

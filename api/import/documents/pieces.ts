import { documentBounds, type Paragraph } from '#api/import/documents/document.ts'
import type { Picture } from '#api/import/documents/pictures.ts'
import type { Losses } from '#api/import/draft.ts'

/** Characters up to which paragraphs of one place are joined: some 250 tokens of running text. */
const pieceLength = 1_000

/** A part of a document that becomes a memory. */
export type Piece = {
  /** Empty for a picture. */
  content: string
  page?: number
  section?: string
  picture?: Picture
}

/** A head of a table that is longer is said once. */
const headLengthMax = 300

/** A section's name as it is kept, in characters. */
const sectionLength = 200

/**
 * Joins paragraphs of one place to pieces, and cuts what is longer than one. A heading begins a piece, since it
 * stands for another place; the head of a table begins each piece of its rows. A picture is a piece of its own, and divides
 * no text: the pieces of the text are the same without it.
 */
export async function* toPieces(
  paragraphs: AsyncIterable<Paragraph>,
  losses: Losses,
): AsyncGenerator<Piece> {
  let open: (Piece & { head: string }) | undefined
  let count = 0
  /** They follow the text before them. */
  const pictures: Piece[] = []
  const close = function* (): Generator<Piece> {
    const { content = '', head: _, ...place } = open ?? {}
    open = undefined
    const texts = [...cut(content)].filter(text => text.trim() !== '')
    const pieces = texts.map((text): Piece => ({ content: text.trim(), ...place }))
    for (const piece of [...pieces, ...pictures.splice(0)])
      if (count++ < documentBounds.pieces) yield piece
      else losses.add(`pieces after the first ${documentBounds.pieces}`)
  }
  let head = ''
  for await (const { text, page, section, isHead, picture } of paragraphs) {
    const name = section?.replaceAll(/\s+/g, ' ').trim()
    const place = {
      ...(page !== undefined && { page }),
      ...(name && { section: Array.from(name).slice(0, sectionLength).join('') }),
    }
    if (picture) {
      pictures.push({ content: '', ...place, picture })
      continue
    }
    const isSamePlace = open !== undefined && open.page === page && open.section === place.section
    if (!isSamePlace || isHead) head = isHead && text.length <= headLengthMax ? text : ''
    if (open && isSamePlace && open.content.length + text.length < pieceLength) {
      open.content += `\n${text}`
      continue
    }
    const isContinued = isSamePlace && head !== ''
    yield* close()
    open = { content: isContinued ? `${head}\n${text}` : text, head, ...place }
  }
  yield* close()
}

/** Ends of lines, of sentences, of words. */
const breaks = [/\n/g, /[。！？]|[.!?…]["'”’)\]]*\s/g, /\s/g]

/** Cuts a text behind the last line, else sentence, else word in the second half of a piece. */
function* cut(text: string): Generator<string> {
  let from = 0
  while (text.length - from > pieceLength) {
    const window = text.slice(from, from + pieceLength)
    const end = lastBreak(window)
    yield window.slice(0, end)
    from += end
  }
  yield text.slice(from)
}

function lastBreak(window: string): number {
  for (const pattern of breaks) {
    const last = [...window.matchAll(pattern)].at(-1)
    const end = last ? last.index + last[0].length : 0
    if (end > pieceLength / 2) return end
  }
  const last = window.charCodeAt(pieceLength - 1)
  return last >= 0xd800 && last < 0xdc00 ? pieceLength - 1 : pieceLength
}

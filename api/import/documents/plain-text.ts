import type { DocumentReader, Paragraph } from '#api/import/documents/document.ts'

/**
 * The text of bytes: in the Unicode form that their mark tells, in UTF-8, or in the charset that is given; else each
 * byte is a letter of Windows-1252, so that nothing is lost.
 */
export function decodeText(bytes: Uint8Array, charset?: string): string {
  const marked =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : undefined
  if (marked) return new TextDecoder(marked).decode(bytes)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return decoderOf(charset).decode(bytes)
  }
}

function decoderOf(charset: string | undefined): TextDecoder {
  try {
    return new TextDecoder(charset ?? 'windows-1252')
  } catch {
    return new TextDecoder('windows-1252')
  }
}

/** Reads plain text: a blank line ends a paragraph. */
export const readPlainText: DocumentReader = ({ bytes }) => paragraphsOf(decodeText(bytes))

export function* paragraphsOf(text: string, section?: string): Generator<Paragraph> {
  const place = section === undefined ? {} : { section }
  for (const paragraph of text.split(/\r?\n[ \t]*\r?\n/))
    if (paragraph.trim() !== '') yield { text: paragraph.trimEnd(), ...place }
}

/** Reads a table of separated values; its first line stands at the beginning of each piece. */
export const readSeparated: DocumentReader = function* ({ bytes }) {
  let isHead = true
  for (const line of decodeText(bytes).split(/\r?\n/)) {
    if (line.trim() === '') continue
    yield { text: line, ...(isHead && { isHead }) }
    isHead = false
  }
}

import type { Picture, Pictures } from '#api/import/documents/pictures.ts'
import type { Losses } from '#api/import/draft.ts'

/** A paragraph, a row or a heading of a document, with the place it stands at. */
export type Paragraph = {
  text: string
  /** From 1: of a PDF its page, of a presentation its slide. */
  page?: number
  /** The heading, sheet or attachment that it stands under. */
  section?: string
  /** A row that is said again at the beginning of each piece of its section. */
  isHead?: boolean
  /** What stands there in place of a text. */
  picture?: Picture
}

/** A document as it came. */
export type DocumentBytes = {
  bytes: Uint8Array<ArrayBuffer>
  /** As the client calls it; its ending tells the kind where the bytes do not. */
  name: string
  /** Without parameters, in lower case; empty where none was given. */
  mediaType: string
  /** Takes pictures that a model is to describe; without it all are counted. */
  pictures?: Pictures | undefined
}

/**
 * Reads the text of a document in its order.
 *
 * @param losses receives what has no text, or is left out
 * @throws Refusal `invalid` for one that cannot be read
 */
export type DocumentReader = (
  document: DocumentBytes,
  losses: Losses,
) => AsyncIterable<Paragraph> | Iterable<Paragraph>

/** Bounds of what is read of one document; what is beyond is counted. */
export const documentBounds = {
  pages: 2_000,
  pieces: 10_000,
  /** What is read of one archive, unpacked. */
  unpackedBytes: 512 * 1024 * 1024,
  /** Documents within documents, such as a mail in a mail. */
  levels: 4,
} as const

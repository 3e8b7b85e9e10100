import type { DocumentReader } from '#api/import/documents/document.ts'

/** Reads a file that is a picture: it has no text but what a model says of it. */
export const readImage: DocumentReader = ({ bytes, pictures }, losses) => {
  const picture = pictures?.take(bytes, 1)
  if (!picture) losses.add('pictures')
  return picture ? [{ text: '', picture }] : []
}

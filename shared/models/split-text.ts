/**
 * No text has more tokens than UTF-8 bytes, in encodings that fall back to bytes; 8,191 tokens are the smallest limit in
 * use. Counting would need an encoding for every provider.
 */
export const chunkBytesMax = 8_000

/**
 * Splits a text into as few parts of at most so many UTF-8 bytes as possible, of similar size, at the end of a line, a
 * sentence or a word where one is near. Joined, the parts are the text.
 */
export function splitText(text: string, bytesMax = chunkBytesMax): string[] {
  const chunks: string[] = []
  let rest = text
  let bytes = Buffer.byteLength(text)
  while (bytes > bytesMax) {
    const end = findNaturalBreak(rest, indexAtBytes(rest, bytes / Math.ceil(bytes / bytesMax)))
    const chunk = rest.slice(0, end)
    chunks.push(chunk)
    rest = rest.slice(end)
    bytes -= Buffer.byteLength(chunk)
  }
  return [...chunks, rest]
}

/** The index of a number of bytes; never inside a surrogate pair. */
function indexAtBytes(text: string, bytesMax: number): number {
  let bytes = 0
  let index = 0
  for (const sign of text) {
    const code = sign.codePointAt(0)!
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_00_00 ? 3 : 4
    if (bytes > bytesMax) break
    index += sign.length
  }
  return index
}

/** From coarse to fine. */
const breakPatterns = [/\n/g, /[.!?]\s|[。！？]/g, /\s/g]

/** A boundary in the last fifth before an index, else the index itself. */
function findNaturalBreak(text: string, index: number): number {
  const from = Math.ceil(index * 0.8)
  const near = text.slice(from, index)
  for (const pattern of breakPatterns) {
    const boundary = [...near.matchAll(pattern)].at(-1)
    if (boundary) return from + boundary.index + boundary[0].length
  }
  return index
}

/** One unit vector for a text from the vectors of its parts, weighted by their lengths. */
export function weightedMeanVector(
  vectors: readonly Float32Array[],
  chunks: readonly string[],
): Float32Array {
  if (vectors.length === 1) return vectors[0]!
  const mean = new Float32Array(vectors[0]!.length)
  vectors.forEach((vector, n) => {
    for (let i = 0; i < mean.length; i++) mean[i]! += vector[i]! * chunks[n]!.length
  })
  return toUnitLength(mean)
}

/** The vector at length 1; a zero vector is returned unchanged. */
export function toUnitLength(vector: Float32Array): Float32Array {
  let sum = 0
  for (const value of vector) sum += value * value
  const norm = Math.sqrt(sum)
  return norm === 0 ? vector : vector.map(value => value / norm)
}

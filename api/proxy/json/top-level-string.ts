const quote = 0x22
const backslash = 0x5c

/**
 * Finds the text of a top-level member in the beginning of a JSON object, which may break off anywhere.
 *
 * @param name in ASCII, without characters that JSON escapes
 * @returns the range of the text with its quotes; undefined when it is no text or not in these bytes
 */
export function findTopLevelString(
  bytes: Buffer,
  name: string,
): { at: number; end: number } | undefined {
  const wanted = Buffer.from(`"${name}"`)
  let depth = 0
  let isName = false
  let isFound = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === 0x7b || byte === 0x5b) {
      depth++
      isName = byte === 0x7b
      isFound = false
    } else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === 0x2c) {
      isName = true
      isFound = false
    } else if (byte === 0x3a) isName = false
    else if (byte === quote) {
      const end = stringEnd(bytes, at)
      if (end === undefined) return undefined
      if (isFound && !isName && depth === 1) return { at, end }
      if (isName && depth === 1) isFound = wanted.equals(bytes.subarray(at, end))
      at = end - 1
    }
  }
  return undefined
}

function stringEnd(bytes: Buffer, start: number): number | undefined {
  for (let at = start + 1; ;) {
    const end = bytes.indexOf(quote, at)
    if (end < 0) return undefined
    let before = end
    while (before > at && bytes[before - 1] === backslash) before--
    if ((end - before) % 2 === 0) return end + 1
    at = end + 1
  }
}

/**
 * Writes a 64-bit hash of a text as two 32-bit words. Not cryptographic: among a billion texts the
 * chance of one collision is 3 %.
 */
export function writeHash64(text: string, words: Uint32Array) {
  // Two multiplicative hashes side by side, mixed at the end (after cyrb53, in the public domain).
  let low = 0x41c6ce57
  let high = 0xdeadbeef
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    low = Math.imul(low ^ unit, 0x5f356495)
    high = Math.imul(high ^ unit, 0x9e3779b1)
  }
  const one =
    Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  const two =
    Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(one ^ (one >>> 13), 0xc2b2ae35)
  words[0] = one
  words[1] = two
}

/** Returns the form of a text that is hashed: NFC, trimmed. */
export const normalizeForHash = (text: string): string => text.normalize('NFC').trim()

const hashWords = new Uint32Array(2)

/** Returns 53 bits of a hash of a text; equal texts have equal hashes. */
export function hashText(text: string): number {
  writeHash64(normalizeForHash(text), hashWords)
  return (hashWords[1]! & 0x1fffff) * 2 ** 32 + hashWords[0]!
}

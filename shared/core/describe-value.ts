/** Longest part of a value that a message repeats: enough to recognise, too little to leak. */
export const shownLengthMax = 64

/** A value of a client as a message repeats it. */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  return value.length <= shownLengthMax
    ? JSON.stringify(value)
    : `a string of ${countCodePoints(value)} characters`
}

/** Length in code points, as the bounds count them, without a list of them in memory. */
export function countCodePoints(text: string): number {
  let length = 0
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) length++
  return length
}

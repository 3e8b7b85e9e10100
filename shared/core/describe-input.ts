/** Longest part of a value that a message repeats. */
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

/** Length in code points, as the bounds count it. */
export function countCodePoints(text: string): number {
  let length = 0
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) length++
  return length
}

const comparedLengthMax = 64

/**
 * Finds the known name that was most likely meant: at most a third of its characters differ, two at most, and one
 * always may. Case and punctuation do not count, so `sessionId` is `session_id`.
 */
export function suggestName(input: string, candidates: readonly string[]): string | undefined {
  const letters = lettersAndDigits(input.slice(0, comparedLengthMax))
  const [nearest] = candidates
    .map(name => ({ name, distance: editDistance(letters, lettersAndDigits(name)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const distanceMax = Math.min(2, Math.max(1, Math.floor(letters.length / 3)))
  return nearest && nearest.distance <= distanceMax ? nearest.name : undefined
}

/** What to send in place of an unknown field. */
export function unknownFieldHint(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return 'no fields are taken here'
  const nearest = suggestName(unknown, known)
  return nearest ? `did you mean ${nearest}?` : `known fields: ${known.join(', ')}`
}

const lettersAndDigits = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** How many characters must be added, removed, changed or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Infinity
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = swaps ? before[j - 2]! + 1 : Infinity
      next.push(Math.min(changed, swapped, row[j]! + 1, next[j - 1]! + 1))
    }
    before = row
    row = next
  }
  return row[b.length]!
}

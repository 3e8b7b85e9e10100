import { createHash, type Hash } from 'node:crypto'
import { systemRoles } from '#api/proxy/dialects/conversation.ts'
import type { UserTurn } from '#api/proxy/dialects/dialect.ts'
import { eachElement, eachMember, kindAt, namesOf, valueEnd } from '#api/proxy/json/walk.ts'
import type { Format, Entry } from '#api/proxy/dialects/format.ts'

/**
 * @param last of the entries, the one in which the user says something.
 * @param marked whether all messages are marked for caching, by a mark that stands beside them
 */
export function userTurnOf(
  body: Buffer,
  entries: readonly Entry[],
  last: number,
  format: Format,
  marked: boolean,
): UserTurn {
  return {
    get print() {
      return printOf(body, entries.slice(0, last + 1))
    },
    get goesOn() {
      return entries.slice(last + 1).some(entry => goesOn(body, entry, format))
    },
    get place() {
      return format.placeIn(body, entries[last]!, marked && !this.goesOn)
    },
  }
}

/**
 * Whether the model has been at work when this follows the user's turn: it is the result of a tool. What
 * the model says is rather the beginning of an answer that the client writes itself, unless the format
 * knows of answers that were interrupted.
 */
function goesOn(body: Buffer, entry: Entry, { modelRole, isPaused }: Format): boolean {
  if (entry.role === modelRole) return isPaused?.(body, entry) ?? false
  return !systemRoles.has(entry.role)
}

/**
 * A hash of what was said so far, out of the bytes it was sent in: the same from call to call, though
 * clients move the marks of their caches, and write a text with a mark as a list of parts. What the system
 * says does not count; it often tells the time.
 */
function printOf(body: Buffer, entries: readonly Entry[]): Buffer {
  const hash = createHash('sha256')
  for (const { role, content } of entries) {
    if (systemRoles.has(role)) continue
    hash.update(`\n${role} `)
    if (content !== undefined) addContent(hash, body, content)
  }
  return hash.digest()
}

function addContent(hash: Hash, body: Buffer, at: number): void {
  const kind = kindAt(body, at)
  if (kind === 'array') eachElement(body, at, element => addPart(hash, body, element))
  else addPart(hash, body, at)
}

const leftOut = namesOf(['type', 'cache_control'])
const textWord = Buffer.from('"text"')

/** @returns the part's end. */
function addPart(hash: Hash, body: Buffer, at: number): number {
  const kind = kindAt(body, at)
  hash.update(',')
  if (kind !== 'object') {
    const end = valueEnd(body, at)
    if (kind === 'string') hash.update(textWord)
    hash.update(body.subarray(at, end))
    return end
  }
  return eachMember(body, at, (name, nameEnd, value) => {
    const end = valueEnd(body, value)
    const known = leftOut(body, name, nameEnd)
    const isText = known === 'type' && textWord.equals(body.subarray(value, end))
    if (known !== 'cache_control' && !isText) {
      hash.update(body.subarray(name, nameEnd)).update(body.subarray(value, end))
    }
    return end
  })
}

import { createHash, type Hash } from 'node:crypto'
import { systemRoles } from '#api/proxy/dialects/conversation.ts'
import type { UserTurn } from '#api/proxy/dialects/dialect.ts'
import {
  forEachElement,
  forEachMember,
  kindAt,
  createNameMatcher,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'

/**
 * @param last index of the user's last message in the entries
 * @param hasCacheControl whether a `cache_control` of the body applies to the last message
 */
export function createUserTurn(
  body: Buffer,
  entries: readonly RawMessage[],
  last: number,
  format: RequestFormat,
  hasCacheControl: boolean,
): UserTurn {
  return {
    get fingerprint() {
      return fingerprintConversation(body, entries.slice(0, last + 1))
    },
    get isToolContinuation() {
      return entries.slice(last + 1).some(entry => isToolContinuation(body, entry, format))
    },
    get blockIndex() {
      return format.findBlockIndex(
        body,
        entries[last]!,
        hasCacheControl && !this.isToolContinuation,
      )
    },
  }
}

/**
 * Whether a message after the user's turn shows that the model has worked on it: a tool result does. A
 * model message is a prefilled beginning of the reply, unless the format has paused replies.
 */
function isToolContinuation(
  body: Buffer,
  entry: RawMessage,
  { modelRole, isPausedReply }: RequestFormat,
): boolean {
  if (entry.role === modelRole) return isPausedReply?.(body, entry) ?? false
  return !systemRoles.has(entry.role)
}

/**
 * SHA-256 of the conversation's raw bytes. It stays the same from call to call although clients move
 * `cache_control`, and write a text that has one as a list of parts. System messages are left out: they
 * often hold the time.
 */
function fingerprintConversation(body: Buffer, entries: readonly RawMessage[]): Buffer {
  const hash = createHash('sha256')
  for (const { role, content } of entries) {
    if (systemRoles.has(role)) continue
    hash.update(`\n${role} `)
    if (content !== undefined) hashContent(hash, body, content)
  }
  return hash.digest()
}

function hashContent(hash: Hash, body: Buffer, at: number): void {
  const kind = kindAt(body, at)
  if (kind === 'array') forEachElement(body, at, element => hashPart(hash, body, element))
  else hashPart(hash, body, at)
}

const matchIgnoredField = createNameMatcher(['type', 'cache_control'])
const textTypeValue = Buffer.from('"text"')

/** @returns the part's end. */
function hashPart(hash: Hash, body: Buffer, at: number): number {
  const kind = kindAt(body, at)
  hash.update(',')
  if (kind !== 'object') {
    const end = valueEnd(body, at)
    if (kind === 'string') hash.update(textTypeValue)
    hash.update(body.subarray(at, end))
    return end
  }
  return forEachMember(body, at, (name, nameEnd, value) => {
    const end = valueEnd(body, value)
    const known = matchIgnoredField(body, name, nameEnd)
    const isText = known === 'type' && textTypeValue.equals(body.subarray(value, end))
    if (known !== 'cache_control' && !isText) {
      hash.update(body.subarray(name, nameEnd)).update(body.subarray(value, end))
    }
    return end
  })
}

import type { EarlierTurn } from '#api/proxy/dialects/dialect.ts'
import type { RawMessage, RequestFormat } from '#api/proxy/dialects/format.ts'
import { isToolContinuation, type TurnSource } from '#api/proxy/dialects/user-turn.ts'
import { forEachElement, kindAt, valueEnd } from '#api/proxy/json/walk.ts'

/** A turn of the user that the model has answered, with its message. */
export type RawEarlierTurn = EarlierTurn & { message: RawMessage }

/** A message of so many bytes is read again at full price when its block vanishes from before it. */
const longMessageBytes = 8 * 1024

/** Most turns that are looked at: the first ones, so that their blocks never move. */
const turnsMax = 500

/**
 * The turns of the user before the last one: of several messages in a row, the last. Each had the context
 * block while it was the last turn.
 */
export function findEarlierTurns(
  { body, entries, reader, fingerprints }: TurnSource,
  format: RequestFormat,
): RawEarlierTurn[] {
  const users = entries.flatMap((entry, index) => (reader.isUserMessage(entry) ? [index] : []))
  const turns = users.slice(0, -1).flatMap((at, position) => {
    const answer = entries.slice(at + 1, users[position + 1])
    if (!answer.some(({ role }) => role === format.modelRole)) return []
    const message = entries[at]!
    const hasToolSteps = answer.some(entry => isToolContinuation(body, entry, format))
    return [{ message, isKept: hasToolSteps || isLong(body, message) }]
  })
  // The block of the last one vanishes with this request, if it is not among those.
  const last = turns.slice(turnsMax).slice(-1)
  const asked = [...turns.slice(0, turnsMax), ...last.map(turn => ({ ...turn, isKept: false }))]
  return asked.map(({ message, isKept }) => ({
    message,
    isKept,
    fingerprint: fingerprints.of(message),
    isBlockLast: blockIndex => format.isBlockLast(body, message, blockIndex),
  }))
}

const isLong = (body: Buffer, { content }: RawMessage): boolean =>
  content !== undefined && valueEnd(body, content) - content > longMessageBytes

/**
 * Where the request before this one ended: at the last answer of the model, or at the user's message when
 * there is none.
 */
export function endOfPreviousRequest(
  body: Buffer,
  entries: readonly RawMessage[],
  { modelRole }: RequestFormat,
): number {
  let at = entries.findLastIndex(({ role }) => role === modelRole)
  if (at < 0) return entries.at(-1)?.start ?? 0
  while (entries[at - 1]?.role === modelRole) at--
  const before = entries[at - 1]
  return before ? endOfContent(body, before) : entries[at]!.start
}

/** Where the last part ends: behind it that request may have had its block, or the end of its list. */
function endOfContent(body: Buffer, { start, content }: RawMessage): number {
  if (content === undefined || kindAt(body, content) !== 'array') return valueEnd(body, start)
  let end = content + 1
  forEachElement(body, content, element => (end = valueEnd(body, element)))
  return end
}

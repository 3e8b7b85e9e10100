import { copyIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { parseTurns, type Message, type Turn } from '#shared/domain/message-content.ts'
import { isOrganizationKey } from '#shared/domain/member-scope.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { TurnMessage, OrgExtractJob } from '#shared/domain/job-payloads.ts'
import { insertTurns } from '#shared/vault/ingest/member-turns.postgres.ts'

/** The words of an exchange that may add something to the shared memory of an organization. */
export type ExtractionInput = { session: string | null; parts: ExtractionPart[] }

/** As much of an exchange as a model looks through at once. */
type ExtractionPart = Pick<OrgExtractJob, 'saidAt' | 'messages'> & {
  /** Characters in it, or before it, that are not looked through. */
  leftOut: number
}

/** Longest message that is read whole: of a longer one the beginning and the end. */
const messageMax = 12_000
/** Characters of one part. */
const partMax = 96_000
/** Of a longer exchange, the newest: two million characters. */
const partsMax = 20

/**
 * What there is to look through in an exchange, as far as it is stored, in the order it was said. What
 * belongs together is in one part, unless it is longer than that.
 *
 * @param saidAt when messages were said that do not say so themselves, epoch milliseconds; of several
 *   parts each a millisecond after the other
 * @returns undefined for keys that are no member's, and where the member said nothing.
 */
export function toExtractionInput(
  // Of an exchange that somebody else's process began it is not known whose key it came with.
  { member }: { member?: Caller['memberScope'] },
  {
    session,
    saidAt,
    messages,
  }: { session: string | null; saidAt: number; messages: readonly Message[] },
): ExtractionInput | undefined {
  if (member === null || (member && isOrganizationKey(member))) return undefined
  const sourceMessages = parseTurns(messages).flatMap(toSourceMessages)
  const pieces = groupIntoTurns(sourceMessages).flatMap(turn =>
    countCharacters(turn) <= partMax ? [turn] : turn.map(message => [message]),
  )
  const parts = packParts(pieces).filter(part => part.some(({ role }) => role === 'user'))
  if (parts.length === 0) return undefined
  const before = parts.slice(0, -partsMax).flat()
  const count = Math.min(parts.length, partsMax)
  return {
    session,
    parts: parts.slice(-partsMax).map((part, index) => ({
      saidAt: part.findLast(({ role }) => role === 'user')?.at ?? saidAt + index + 1 - count,
      messages: part.map(({ at: _at, leftOut: _leftOut, ...message }) => message),
      leftOut:
        part.reduce((sum, { leftOut }) => sum + leftOut, 0) +
        (index === 0
          ? before.reduce((sum, { text, leftOut }) => sum + text.length + leftOut, 0)
          : 0),
    })),
  }
}

/**
 * Writes the turns of accepted exchanges and the jobs that look through them, in the transaction that
 * accepts them: one of each part, the first under the id of the exchange. Exchanges that came with no
 * member's key, and those that are there already, leave none.
 */
export async function acceptTurns(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  exchanges: readonly (ExtractionInput & {
    turn: string
    keyHash: Buffer
    vault: string
    epoch: number
    sessionEpoch: number
  })[],
): Promise<void> {
  const turns = exchanges.flatMap(({ parts, turn: operation, ...exchange }) =>
    parts.map((part, index) => ({
      ...exchange,
      ...part,
      ...(index === 0
        ? { turn: operation }
        : { turn: copyIdOf(operation, index, 'turn'), operation }),
    })),
  )
  const orgs = await insertTurns(
    tx,
    turns.map(({ turn, keyHash, saidAt, leftOut }) => ({ id: turn, keyHash, saidAt, leftOut })),
  )
  const jobs = turns.flatMap(({ keyHash: _keyHash, leftOut: _leftOut, ...said }) => {
    const org = orgs.get(said.turn)
    return org === undefined ? [] : [{ id: said.turn, data: { ...said, org }, priority: 0 }]
  })
  if (jobs.length > 0) await queue.send(tx, 'org-extract', jobs)
}

/** Messages by turn: one begins where somebody speaks after the model has. */
export function groupIntoTurns<Spoken extends Pick<TurnMessage, 'role'>>(
  messages: readonly Spoken[],
): Spoken[][] {
  const turns: Spoken[][] = []
  for (const [index, message] of messages.entries()) {
    const begins = message.role === 'user' && messages[index - 1]?.role !== 'user'
    if (begins || turns.length === 0) turns.push([])
    turns.at(-1)!.push(message)
  }
  return turns
}

type SourceMessage = TurnMessage & { at: number | undefined; leftOut: number }

function toSourceMessages({ role, text, speaker, at }: Turn): SourceMessage[] {
  if (role === 'system') return []
  const kept = truncateMiddle(text)
  const leftOut = Math.max(0, text.length - messageMax)
  return [{ role, text: kept, ...(speaker !== undefined && { speaker }), at, leftOut }]
}

/** Pieces in as few parts as hold them, in order. */
function packParts(pieces: readonly SourceMessage[][]): SourceMessage[][] {
  const parts: SourceMessage[][] = []
  let room = 0
  for (const piece of pieces) {
    const size = countCharacters(piece)
    if (parts.length > 0 && size <= room) parts.at(-1)!.push(...piece)
    else {
      parts.push([...piece])
      room = partMax
    }
    room -= size
  }
  return parts
}

const countCharacters = (messages: readonly TurnMessage[]): number =>
  messages.reduce((sum, { text }) => sum + text.length, 0)

function truncateMiddle(text: string): string {
  if (text.length <= messageMax) return text
  const half = messageMax / 2
  return `${text.slice(0, half).toWellFormed()}\n[…]\n${text.slice(-half).toWellFormed()}`
}

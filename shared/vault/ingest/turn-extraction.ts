import { copyIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Message, Turn } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { isOrganizationKey } from '#shared/domain/member-scope.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { TurnMessage, OrgExtractJob } from '#shared/domain/job-payloads.ts'
import { insertTurns } from '#shared/vault/ingest/member-turns.postgres.ts'

/** The text of an exchange that may add to the shared memory of an organization. */
export type ExtractionInput = {
  session: string | null
  parts: (Pick<OrgExtractJob, 'saidAt' | 'messages'> & {
    /** Characters in it, or before it, that are not extracted from. */
    leftOut: number
  })[]
  /** Tags of the shared memories in the prompt. */
  inheritedTags: readonly string[]
}

/** Longest message, in characters: of a longer one only the beginning and the end are used. */
const messageMax = 12_000
/** Characters per part. */
const partMax = 96_000
/** The newest parts of a longer exchange are used: about two million characters. */
const partsMax = 20

/**
 * The parts of an exchange to extract from, oldest first. A turn stays within one part, unless it is longer.
 *
 * @param saidAt when it was accepted, epoch milliseconds: the time of messages without a timestamp or with a
 *   later one; several parts get times one millisecond apart
 * @returns undefined for keys that are no member's, and where the member wrote nothing.
 */
export function toExtractionInput(
  // Undefined when it is unknown whether the key is a member's; `acceptTurns` finds out.
  { memberScope: member }: { memberScope?: Caller['memberScope'] },
  {
    session,
    saidAt,
    messages,
    inheritedTags = [],
  }: {
    session: string | null
    saidAt: number
    messages: readonly Message[]
    inheritedTags?: readonly string[]
  },
): ExtractionInput | undefined {
  if (member === null || (member && isOrganizationKey(member))) return undefined
  const sourceMessages = toReadTurns(messages).flatMap(toSourceMessages)
  const pieces = groupIntoTurns(sourceMessages).flatMap(turn =>
    countCharacters(turn) <= partMax ? [turn] : turn.map(message => [message]),
  )
  const parts = packParts(pieces).filter(part => part.some(({ role }) => role === 'user'))
  if (parts.length === 0) return undefined
  const before = parts.slice(0, -partsMax).flat()
  const count = Math.min(parts.length, partsMax)
  return {
    session,
    inheritedTags,
    parts: parts.slice(-partsMax).map((part, index) => ({
      // Never after it was accepted: a time ahead would outlive every later correction of shared memory.
      saidAt: Math.min(
        part.findLast(({ role }) => role === 'user')?.at ?? Infinity,
        saidAt + index + 1 - count,
      ),
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
 * Writes the turns of accepted exchanges and their extraction jobs, in the transaction that accepts the
 * exchanges: one turn per part, the first under the exchange's id. Skips keys that are no member's, and turns
 * that exist. The jobs wait for `gatherSeconds`, so that one call extracts from several exchanges; the first one
 * after so long a silence waits a fifth of that.
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
  gatherSeconds: number,
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
  const inserted = await insertTurns(
    tx,
    turns.map(({ turn, ...row }) => ({ ...row, id: turn })),
    gatherSeconds,
  )
  const jobs = turns.flatMap(
    ({ keyHash: _key, leftOut: _leftOut, inheritedTags: _tags, ...payload }) => {
      const { org, isAfterQuiet } = inserted.get(payload.turn) ?? {}
      if (org === undefined) return []
      const job = { id: payload.turn, data: { ...payload, org }, priority: 0, group: org }
      const afterSeconds = isAfterQuiet ? Math.ceil(gatherSeconds / 5) : gatherSeconds
      return [{ ...job, ...(afterSeconds > 0 && { afterSeconds }) }]
    },
  )
  if (jobs.length > 0) await queue.send(tx, 'org-extract', jobs)
}

/** Groups messages by turn: a turn begins where a user message follows a message of the model. */
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
  const leftOut = Math.max(0, text.length - messageMax)
  return [
    { role, text: truncateMiddle(text), ...(speaker !== undefined && { speaker }), at, leftOut },
  ]
}

/** Packs pieces into as few parts as possible, in order. */
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

import type { Caller } from '#shared/key/caller.ts'
import { turnsOf, type Message, type Turn } from '#shared/memory/content.ts'
import { isNobody } from '#shared/org/scope.ts'
import type { Transaction } from '#shared/postgres/connect.ts'
import { insertTurns } from '#shared/postgres/org-turns.ts'
import type { Queue } from '#shared/queue/queue.ts'

export type SaidMessage = { role: 'user' | 'assistant'; text: string; speaker?: string }

/**
 * What a member said, on its way to the extractor. Only this payload holds the words: like those of an
 * ingest they go within a minute of being used, and when their vault or session is cleared.
 */
export type OrgExtractJob = {
  turn: string
  org: string
  /** The member's private vault, as of these epochs. */
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** Epoch milliseconds. */
  saidAt: number
  messages: SaidMessage[]
}

/** The words are gone by now: the turn's row has what was found in them. */
export type OrgTurnJob = { turn: string; org: string }

/** The words of an exchange that may add something to the shared memory of an organization. */
export type Said = Pick<OrgExtractJob, 'session' | 'saidAt' | 'messages'>

/** Longest message that is read whole: of a longer one the beginning and the end. */
const messageMax = 12_000
/** Of a longer exchange, the newest messages. */
const exchangeMax = 96_000

/**
 * What there is to look through in an exchange, as far as it is stored.
 *
 * @returns undefined for keys that are no member's, and where the member said nothing.
 */
export function saidIn(
  // Of an exchange that somebody else's process began it is not known whose key it came with.
  { member }: { member?: Caller['member'] },
  {
    session,
    saidAt,
    messages,
  }: { session: string | null; saidAt: number; messages: readonly Message[] },
): Said | undefined {
  if (member === null || (member && isNobody(member))) return undefined
  const turns = turnsOf(messages)
  if (!turns.some(({ role }) => role === 'user')) return undefined
  return { session, saidAt, messages: messagesOf(turns) }
}

/**
 * Writes the turns of accepted exchanges and the jobs that look through them, in the transaction that
 * accepts them. Exchanges that came with no member's key, and those that are there already, leave none.
 */
export async function promiseTurns(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  exchanges: readonly (Said & {
    turn: string
    keyHash: Buffer
    vault: string
    epoch: number
    sessionEpoch: number
  })[],
): Promise<void> {
  const orgs = await insertTurns(
    tx,
    exchanges.map(({ turn, keyHash }) => ({ id: turn, keyHash })),
  )
  const jobs = exchanges.flatMap(({ keyHash: _keyHash, ...said }) => {
    const org = orgs.get(said.turn)
    return org === undefined ? [] : [{ id: said.turn, data: { ...said, org }, priority: 0 }]
  })
  if (jobs.length > 0) await queue.send(tx, 'org-extract', jobs)
}

function messagesOf(turns: readonly Turn[]): SaidMessage[] {
  const messages: SaidMessage[] = []
  let room = exchangeMax
  for (const { role, text, speaker } of turns.toReversed()) {
    if (role === 'system') continue
    const message = {
      role,
      text: shortened(text),
      ...(speaker !== undefined && { speaker }),
    }
    room -= message.text.length
    if (room < 0 && messages.length > 0) break
    messages.unshift(message)
  }
  return messages
}

function shortened(text: string): string {
  if (text.length <= messageMax) return text
  const half = messageMax / 2
  return `${text.slice(0, half).toWellFormed()}\n[…]\n${text.slice(-half).toWellFormed()}`
}

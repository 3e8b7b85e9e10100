import type { Caller } from '#shared/access/caller.ts'
import { contextBlock } from '#shared/domain/context-block.ts'
import { turnsOf, type Message, type Turn } from '#shared/domain/turn-content.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { recallAgain } from '#shared/vault/read/recall-again.ts'
import { recall, type Recalled } from '#shared/vault/read/recall.ts'
import { repeatedOf } from '#shared/vault/read/already-in-conversation.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import type { RetrievalTrail } from '#shared/vault/read/retrieval-trail.ts'

type Density = 'low' | 'default' | 'high' | 'xhigh'

/** How many memories a density may bring. */
const memoriesOfDensity: Record<Density, number> = {
  low: 12,
  default: 30,
  high: 60,
  xhigh: 120,
}

export type Preparation = {
  messages: readonly Message[]
  session: string | null
  embeddings: string | undefined
  density: Density | undefined
  /** Overrides the density: 1 to 500 memories. */
  limit: number | undefined
  tiers: readonly Tier[] | undefined
  importance: number | undefined
}

export type Prepared = {
  /** Null when nothing relevant is remembered. */
  context: string | null
  memories: number
  /** Tokens of the recalled memories. */
  recalledTokens: number
  /** Tokens of the whole block, as it goes into a prompt. */
  contextTokens: number
  /** What the block is made of: the same makes the same block again. */
  ids: string[]
  at: number
}

/**
 * Recalls what core and session vault know about the last turns of a conversation, and what a member
 * may see of the shared memory, and writes the block for the prompt. What the conversation itself says is
 * not recalled: the model reads it there.
 *
 * @throws what `recall` throws.
 */
export async function prepareContext(
  backend: Parameters<typeof recall>[0] & { retrievals: RetrievalTrail },
  caller: Caller,
  preparation: Preparation,
): Promise<Prepared> {
  const limit = preparation.limit ?? memoriesOfDensity[preparation.density ?? 'default']
  const found = await recalled(backend, caller, preparation, limit)
  if (caller.member) backend.retrievals.record(caller.member)
  return preparedOf(
    found.map(({ memory }) => memory),
    backend.now(),
  )
}

/**
 * The block that was prepared before: the same bytes, unless something it is made of has been changed or
 * deleted since.
 *
 * @throws what `recall` throws.
 */
export async function prepareAgain(
  backend: Parameters<typeof recallAgain>[0] & { retrievals: RetrievalTrail },
  caller: Caller,
  { ids, at }: Pick<Prepared, 'ids' | 'at'>,
  { session, embeddings }: Pick<Preparation, 'session' | 'embeddings'>,
): Promise<Prepared> {
  const memories = await recallAgain(backend, caller, {
    ids,
    sessions: sessionsOf(session),
    embeddings,
  })
  if (caller.member) backend.retrievals.record(caller.member)
  return preparedOf(memories, at)
}

function preparedOf(memories: readonly Memory[], at: number): Prepared {
  const context = contextBlock(memories, at)
  return {
    context,
    memories: memories.length,
    recalledTokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
    contextTokens: context === null ? 0 : tokensOf(context),
    ids: memories.map(({ id }) => id),
    at,
  }
}

/** A session is recalled together with the core. */
const sessionsOf = (session: string | null): (string | null)[] =>
  session === null ? [null] : [null, session]

/** What the last user turn asks counts in full; what was said just before it adds what it calls to mind. */
async function recalled(
  backend: Parameters<typeof recall>[0],
  caller: Caller,
  preparation: Preparation,
  limit: number,
): Promise<Recalled[]> {
  // What is not to be stored is asked about all the same.
  const turns = turnsOf(preparation.messages.map(({ role, content }) => ({ role, content })))
  const asking = askingTurn(turns)
  const { question, background } = retrievalTexts(turns, asking)
  // What was said before stands in the request; what is asked now may be what somebody once told us.
  const without = repeatedOf(turns.toSpliced(asking, 1).map(({ text }) => text))
  const asked = (text: string, places: number): Promise<Recalled[]> =>
    text === '' || places === 0
      ? Promise.resolve([])
      : recall(backend, caller, {
          text,
          limit: places,
          sessions: sessionsOf(preparation.session),
          embeddings: preparation.embeddings,
          tiers: preparation.tiers,
          importance: preparation.importance,
          floor: true,
          without,
        })
  const direct = await asked(question, limit)
  const room = Math.min(limit - direct.length, Math.ceil(limit / 3))
  const around = await asked(background, room)
  const known = new Set(direct.map(({ memory }) => memory.text))
  return [...direct, ...around.filter(({ memory }) => !known.has(memory.text))]
}

/** The newest turns say what the conversation is about. */
const backgroundTurns = 4
const questionCharacters = 8_000
const backgroundCharacters = 2_000

/** The last user turn, or the last of all where there is none. */
function askingTurn(turns: readonly Turn[]): number {
  const userTurn = turns.findLastIndex(({ role }) => role === 'user')
  return userTurn >= 0 ? userTurn : Math.max(0, turns.length - 1)
}

/**
 * The texts to look for, out of the most recent turns that are not the system's: the last user turn,
 * and the few turns before it.
 */
function retrievalTexts(
  turns: readonly Turn[],
  last: number,
): {
  question: string
  background: string
} {
  const question = (turns[last]?.text ?? '').slice(-questionCharacters).trim()
  const background = turns
    .slice(Math.max(0, last - backgroundTurns), Math.max(0, last))
    .map(({ text }) => text.slice(0, backgroundCharacters / backgroundTurns))
    .join('\n')
    .trim()
  return { question, background }
}

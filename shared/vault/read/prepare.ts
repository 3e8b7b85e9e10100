import type { Caller } from '#shared/access/caller.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'
import { parseTurns, type Message, type Turn } from '#shared/domain/message-content.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { reloadRecalled } from '#shared/vault/read/reload-recalled.ts'
import { recall, type RecalledMemory } from '#shared/vault/read/recall.ts'
import { excludeTexts } from '#shared/vault/read/already-in-conversation.ts'
import { countTokens } from '#shared/core/tokens.ts'
import type { RetrievalTrail } from '#shared/vault/read/retrieval-trail.ts'

type Density = 'low' | 'default' | 'high' | 'xhigh'

/** How many memories a density may bring. */
const densityLimits: Record<Density, number> = {
  low: 12,
  default: 30,
  high: 60,
  xhigh: 120,
}

export type PrepareRequest = {
  messages: readonly Message[]
  session: string | null
  embeddings: string | undefined
  density: Density | undefined
  /** Overrides the density: 1 to 500 memories. */
  limit: number | undefined
  tiers: readonly Tier[] | undefined
  importance: number | undefined
}

export type PreparedContext = {
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
  preparation: PrepareRequest,
): Promise<PreparedContext> {
  const limit = preparation.limit ?? densityLimits[preparation.density ?? 'default']
  const found = await recallForConversation(backend, caller, preparation, limit)
  if (caller.memberScope) backend.retrievals.record(caller.memberScope)
  return buildPreparedContext(
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
export async function rebuildContext(
  backend: Parameters<typeof reloadRecalled>[0] & { retrievals: RetrievalTrail },
  caller: Caller,
  { ids, at }: Pick<PreparedContext, 'ids' | 'at'>,
  { session, embeddings }: Pick<PrepareRequest, 'session' | 'embeddings'>,
): Promise<PreparedContext> {
  const memories = await reloadRecalled(backend, caller, {
    ids,
    sessions: sessionsToRecall(session),
    embeddings,
  })
  if (caller.memberScope) backend.retrievals.record(caller.memberScope)
  return buildPreparedContext(memories, at)
}

function buildPreparedContext(memories: readonly Memory[], at: number): PreparedContext {
  const context = renderContextBlock(memories, at)
  return {
    context,
    memories: memories.length,
    recalledTokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
    contextTokens: context === null ? 0 : countTokens(context),
    ids: memories.map(({ id }) => id),
    at,
  }
}

/** A session is recalled together with the core. */
const sessionsToRecall = (session: string | null): (string | null)[] =>
  session === null ? [null] : [null, session]

/** What the last user turn asks counts in full; what was said just before it adds what it calls to mind. */
async function recallForConversation(
  backend: Parameters<typeof recall>[0],
  caller: Caller,
  preparation: PrepareRequest,
  limit: number,
): Promise<RecalledMemory[]> {
  // What is not to be stored is asked about all the same.
  const turns = parseTurns(preparation.messages.map(({ role, content }) => ({ role, content })))
  const questionIndex = questionTurnIndex(turns)
  const { question, background } = retrievalTexts(turns, questionIndex)
  // What was said before stands in the request; what is asked now may be what somebody once told us.
  const excludedTexts = excludeTexts(turns.toSpliced(questionIndex, 1).map(({ text }) => text))
  const recallText = (text: string, places: number): Promise<RecalledMemory[]> =>
    text === '' || places === 0
      ? Promise.resolve([])
      : recall(backend, caller, {
          text,
          limit: places,
          sessions: sessionsToRecall(preparation.session),
          embeddings: preparation.embeddings,
          tiers: preparation.tiers,
          importance: preparation.importance,
          relevantOnly: true,
          excludedTexts,
        })
  const direct = await recallText(question, limit)
  const remaining = Math.min(limit - direct.length, Math.ceil(limit / 3))
  const around = await recallText(background, remaining)
  const known = new Set(direct.map(({ memory }) => memory.text))
  return [...direct, ...around.filter(({ memory }) => !known.has(memory.text))]
}

/** The newest turns say what the conversation is about. */
const backgroundTurns = 4
const questionCharacters = 8_000
const backgroundCharacters = 2_000

/** The last user turn, or the last of all where there is none. */
function questionTurnIndex(turns: readonly Turn[]): number {
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

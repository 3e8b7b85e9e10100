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
  /** The memories of the block, and the time of its ages: the same values give the same block. */
  ids: string[]
  at: number
}

/**
 * Recalls what is relevant to the last turns of a conversation from the core and session vault and from
 * the shared memory that a member may see, and renders the block for the prompt. Texts that the
 * conversation contains are not recalled.
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
 * Renders a block that was prepared before: the same bytes, unless one of its memories was changed or
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

/** A session is searched together with the core vault. */
const sessionsToRecall = (session: string | null): (string | null)[] =>
  session === null ? [null] : [null, session]

/** Recalls for the last user turn up to the limit, then for the turns before it up to a third of the limit. */
async function recallForConversation(
  backend: Parameters<typeof recall>[0],
  caller: Caller,
  preparation: PrepareRequest,
  limit: number,
): Promise<RecalledMemory[]> {
  // Turns that are marked as not to be stored are recalled for, too.
  const turns = parseTurns(preparation.messages.map(({ role, content }) => ({ role, content })))
  const questionIndex = questionTurnIndex(turns)
  const { question, background } = retrievalTexts(turns, questionIndex)
  // The question itself is not excluded: a memory may have the same text.
  const excludedTexts = excludeTexts(turns.toSpliced(questionIndex, 1).map(({ text }) => text))
  const recallText = (text: string, max: number): Promise<RecalledMemory[]> =>
    text === '' || max === 0
      ? Promise.resolve([])
      : recall(backend, caller, {
          text,
          limit: max,
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

/** Turns before the question that are recalled for. */
const backgroundTurns = 4
const questionCharacters = 8_000
const backgroundCharacters = 2_000

/** The last user turn, or the last turn when no user turn exists. */
function questionTurnIndex(turns: readonly Turn[]): number {
  const userTurn = turns.findLastIndex(({ role }) => role === 'user')
  return userTurn >= 0 ? userTurn : Math.max(0, turns.length - 1)
}

/**
 * The texts to recall for, without those of the system: the last user turn, and the few turns before it.
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

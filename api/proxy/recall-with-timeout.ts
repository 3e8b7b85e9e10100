import type { UserTurn } from '#api/proxy/dialects/dialect.ts'
import type { Backend } from '#shared/backend.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Message } from '#shared/domain/message-content.ts'
import { rebuildContext, prepareContext, type PreparedContext } from '#shared/vault/read/prepare.ts'

/** The result of a recall for a call. */
export type RecallResult = {
  /**
   * `ok`: there is a context block; `none`: nothing relevant was found; `off`: not requested;
   * `degraded`: the recall failed or took too long, and the call continues without a block.
   */
  status: 'ok' | 'none' | 'off' | 'degraded'
  context: string | null
  /** How many parts of the user's turn precede the block. */
  blockIndex: number
  /** Tokens of the memories found, and of the context block. */
  recalledTokens: number
  contextTokens: number
  /** Resolves when the result is stored for the next call of the same turn; never rejects. */
  persisted: Promise<void>
}

/** Longest that a call waits for each step of the recall. */
const recallTimeoutMs = 1_500

const emptyRecall = {
  context: null,
  blockIndex: 0,
  recalledTokens: 0,
  contextTokens: 0,
  persisted: Promise.resolve(),
}

export const disabledRecall: RecallResult = { status: 'off', ...emptyRecall }

const degradedRecall: RecallResult = { status: 'degraded', ...emptyRecall }

type RecallQuery = {
  turns: readonly Message[]
  turn: Pick<UserTurn, 'isToolContinuation' | 'blockIndex'>
  /** Identifies the turn in the caller's vault. */
  turnId: Buffer
  session: string | null
  space: EmbeddingSpace
}

type ProxyRecallBackend = Pick<Backend, 'recalledTurns' | 'log'> &
  Parameters<typeof prepareContext>[0] &
  Parameters<typeof rebuildContext>[0]

/**
 * Recalls from core and session what is relevant to a conversation. Never rejects.
 *
 * All calls of a turn get the same block: a call with tool results gets the block of the turn's first
 * call, byte for byte and in the same place, or none if that had none. So the provider's cache of the
 * turn stays valid. Memories stored since then appear from the next turn on; memories deleted since then
 * leave the block at once.
 */
export async function recallWithTimeout(
  backend: ProxyRecallBackend,
  caller: Caller,
  query: RecallQuery,
): Promise<RecallResult> {
  // Expired memories could not be removed in time.
  if (caller.keyRow.hasExpired) return degradedRecall
  const { turn, turnId, session, space } = query
  const key = { vault: caller.scope.vault, turn: turnId }
  const logFailure = (error: unknown): void =>
    backend.log.warn({ err: error, account: caller.account }, 'proxy.recall-failed')
  const orUndefined = <Result>(work: Promise<Result>): Promise<Result | void> =>
    withRecallTimeout(work).catch(logFailure)

  const storedRecall = turn.isToolContinuation
    ? await orUndefined(backend.recalledTurns.find(key))
    : undefined
  if (storedRecall) {
    const { memories, at, place } = storedRecall
    if (memories === null) return { ...degradedRecall, blockIndex: place }
    const partition = { session, embeddings: space.model }
    const prepared = rebuildContext(backend, caller, { ids: memories, at }, partition)
    return { ...toRecallResult(await orUndefined(prepared)), blockIndex: place }
  }

  const firstPrepared = space.ready
    ? await orUndefined(prepareFirst(backend, caller, query))
    : undefined
  const { ids, at } = firstPrepared ?? { ids: null, at: backend.now() }
  const { blockIndex } = turn
  const persisted = backend.recalledTurns
    .save(key, { memories: ids, at, place: blockIndex })
    .catch(logFailure)
  return { ...toRecallResult(firstPrepared), blockIndex, persisted }
}

const prepareFirst = (
  backend: ProxyRecallBackend,
  caller: Caller,
  { turns, session, space }: RecallQuery,
): Promise<PreparedContext> =>
  prepareContext(backend, caller, {
    messages: turns,
    session,
    embeddings: space.model,
    density: undefined,
    limit: undefined,
    tiers: undefined,
    importance: undefined,
  })

function toRecallResult(prepared: PreparedContext | void): RecallResult {
  if (!prepared) return degradedRecall
  const { context, recalledTokens, contextTokens } = prepared
  const status = context === null ? 'none' : 'ok'
  return { ...emptyRecall, status, context, recalledTokens, contextTokens }
}

/** The embedding model of a call; not `ready` when its provider does not answer. */
export type EmbeddingSpace = { model: string; ready: boolean }

/**
 * The embedding model of a call. When its provider is unreachable nothing is recalled, and the exchange
 * is stored later.
 *
 * @throws Refusal `invalid` when this service has no such model.
 */
export async function resolveEmbeddingSpace(
  { embedders }: Pick<Backend, 'embedders'>,
  requestedModel: string | undefined,
): Promise<EmbeddingSpace> {
  if (requestedModel === undefined || requestedModel === embedders.defaultModel) {
    return { model: embedders.defaultModel, ready: true }
  }
  try {
    return { model: (await withRecallTimeout(embedders.get(requestedModel))).model, ready: true }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') throw error
    return { model: requestedModel, ready: false }
  }
}

const withRecallTimeout = <Result>(work: Promise<Result>): Promise<Result> =>
  withTimeout(work, recallTimeoutMs, () => {
    throw new Error(`not within ${recallTimeoutMs} ms`)
  })

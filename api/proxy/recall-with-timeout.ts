import type { EarlierTurn, UserTurn } from '#api/proxy/dialects/dialect.ts'
import type { EmbeddingSpace } from '#api/proxy/embedding-space.ts'
import {
  noEarlierBlocks,
  recallEarlierTurns,
  type EarlierBlocks,
  rebuildBlock,
  saveTurn,
  toRecalledTurn,
  withoutBlock,
  type StoredBlockBackend,
} from '#api/proxy/recall-earlier-turns.ts'
import {
  degradedRecall,
  emptyRecall,
  toRecallResult,
  withEarlier,
  type RecallResult,
} from '#api/proxy/recall-result.ts'
import { withRecallTimeout } from '#api/proxy/recall-timeout.ts'
import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import {
  findContext,
  renderContext,
  type FoundContext,
  type PreparedContext,
  type Density,
} from '#shared/vault/read/prepare/prepare.ts'
import type { StoredTurn } from '#shared/vault/read/traces/recalled-turns.postgres.ts'

type RecallQuery = {
  turns: readonly Message[]
  turn: UserTurn
  earlierTurns: readonly EarlierTurn[]
  /** Identifies the turn in the caller's vault. */
  turnId: Buffer
  /** As that id, of any turn of the conversation. */
  toTurnId(fingerprint: Buffer): Buffer
  session: string | null
  space: EmbeddingSpace
  bounds: ContextBounds
  /** Epoch ms: later memories are unknown, and ages are counted from it. */
  asOf: number | undefined
  /** Memories without such metadata are left out. */
  filter: MetadataFilter | undefined
}

/** How many memories a block may have; undefined for the default. */
export type ContextBounds = { density: Density | undefined; limit: number | undefined }

type ProxyRecallBackend = Pick<Backend, 'config' | 'embedders' | 'storeBreaker' | 'now'> &
  StoredBlockBackend &
  Parameters<typeof findContext>[0]

/**
 * Recalls from core and session what is relevant to a conversation. Never rejects.
 *
 * All calls of a turn get the same block: a call with tool results gets the block of the turn's first
 * call, byte for byte and in the same place, or none if that had none. So the provider's cache of the
 * turn stays valid. Blocks of earlier turns stay where they were, where much follows them. Memories stored
 * since then appear from the next turn on; memories deleted since then leave the blocks at once.
 */
export async function recallWithTimeout(
  backend: ProxyRecallBackend,
  caller: Caller,
  query: RecallQuery,
): Promise<RecallResult> {
  // Expired memories could not be removed in time.
  if (caller.keyRow.hasExpired) return { ...degradedRecall, lost: firstTurn(query) }
  const steps = timedSteps(backend, caller, query)
  const find = (): Promise<FoundContext | void> => findFirst(backend, caller, query, steps)
  const blocks = findBlocks(backend, caller, query, steps)
  // Beside it: only a turn that goes on may have a block already.
  const finding = query.turn.isToolContinuation ? undefined : find()
  const { earlier, isUnknown, stored } = await blocks
  if (stored) return recallAgain(backend, caller, query, { earlier, isUnknown, stored, steps })

  const { turn, turnId } = query
  const found = await (finding ?? find())
  const firstPrepared =
    found && (await steps.orUndefined(render(backend, caller, found, earlier.ids)))
  const { blockIndex } = turn
  const recalled = firstPrepared
    ? toRecalledTurn(firstPrepared, blockIndex)
    : withoutBlock(backend.now(), blockIndex)
  const key = { vault: caller.scope.vault, turn: turnId }
  const persisted = saveTurn(backend, caller, key, { ...recalled, isPartial: isUnknown })
  const { confidence, abstained } = firstPrepared ?? {}
  const told = confidence === undefined ? {} : { confidence, abstained: abstained ?? null }
  const result = { ...toRecallResult(firstPrepared, blockIndex), ...told, persisted }
  return withEarlier(result, earlier, turn.isToolContinuation ? turn : undefined)
}

/**
 * What an aside inside a conversation goes on from: the blocks of all turns before it as they were, so that
 * the provider's cache holds. Nothing is recalled for the aside itself. Never rejects.
 */
export async function recallForAside(
  backend: ProxyRecallBackend,
  caller: Caller,
  query: RecallQuery,
): Promise<RecallResult> {
  const status = 'aside'
  if (caller.keyRow.hasExpired) return { ...emptyRecall, status, lost: firstTurn(query) }
  const steps = timedSteps(backend, caller, query)
  const { earlier, isUnknown, stored } = await findBlocks(backend, caller, query, steps, true)
  const result: RecallResult = { ...emptyRecall, status }
  // Its words may belong to the turn under way, which had a block.
  const own = stored && { earlier, isUnknown, stored, steps }
  const again = own && (await recallAgain(backend, caller, query, own))
  return again ? { ...again, status } : withEarlier(result, earlier, undefined)
}

/** The steps of a recall: each has its time, and tells the breakers when it takes longer. */
function timedSteps(backend: ProxyRecallBackend, { account }: Caller, { space }: RecallQuery) {
  const { log, embedders, storeBreaker } = backend
  const breaker = embedders.breakerOf(space.model)
  // Which of the two was late is what their probes find out.
  const noteTimeout = (): void => {
    breaker?.failed()
    storeBreaker.failed()
  }
  return {
    breaker,
    orUndefined: <Result>(work: Promise<Result>): Promise<Result | void> =>
      withRecallTimeout(backend, work, noteTimeout).catch((error: unknown) =>
        log.warn({ err: error, account }, 'proxy.recall-failed'),
      ),
  }
}

type FoundBlocks = {
  earlier: EarlierBlocks
  /** Whether the blocks of earlier turns could not be looked up in time: they are missing in the prompt. */
  isUnknown: boolean
  /** The turn's own recall, by one of its calls before. */
  stored: StoredTurn | undefined
}

async function findBlocks(
  backend: ProxyRecallBackend,
  caller: Caller,
  query: RecallQuery,
  { orUndefined }: ReturnType<typeof timedSteps>,
  isAside = false,
): Promise<FoundBlocks> {
  const { turn, turnId, earlierTurns: turns, toTurnId, session, space } = query
  const { isToolContinuation } = turn
  const asked = { turns, toTurnId, isToolContinuation, session, embeddings: space.model }
  const key = { vault: caller.scope.vault, turn: turnId }
  const [earlier, stored] = await Promise.all([
    orUndefined(recallEarlierTurns(backend, caller, { ...asked, keepsLast: isAside })),
    isToolContinuation || isAside ? orUndefined(backend.recalledTurns.find(key)) : undefined,
  ])
  return {
    earlier: earlier ?? { ...noEarlierBlocks, lost: turns[0] },
    isUnknown: !earlier,
    stored: stored ?? undefined,
  }
}

/** The block of the turn as its first call had it, with those of earlier turns. */
async function recallAgain(
  backend: ProxyRecallBackend,
  caller: Caller,
  query: RecallQuery,
  {
    earlier,
    isUnknown,
    stored,
    steps,
  }: FoundBlocks & {
    stored: StoredTurn
    steps: ReturnType<typeof timedSteps>
  },
): Promise<RecallResult> {
  const { turn, turnId, session, space } = query
  const partition = { session, embeddings: space.model }
  const hasBlock = stored.memories !== null
  const rebuilt = hasBlock
    ? await steps.orUndefined(rebuildBlock(backend, caller, stored, partition))
    : undefined
  const isMissing = hasBlock && !rebuilt
  const isPartial = isUnknown || isMissing
  const isChanged = isMissing || rebuilt?.isWhole === false
  const isSaved = !isChanged && !stored.isAging && isPartial === stored.isPartial
  const key = { vault: caller.scope.vault, turn: turnId }
  const now = { ...(rebuilt?.turn ?? stored), isPartial }
  const persisted = isSaved ? undefined : saveTurn(backend, caller, key, now)
  const result = toRecallResult(rebuilt?.prepared, stored.place)
  const lost = stored.isPartial
    ? firstTurn(query)
    : (earlier.lost ?? (isChanged ? turn : undefined))
  return withEarlier(
    { ...result, ...(persisted && { persisted }) },
    { ...earlier, lost },
    undefined,
  )
}

/** The first turn that may have had a block in a request before this one. */
const firstTurn = ({ earlierTurns, turn }: RecallQuery): EarlierTurn | UserTurn | undefined =>
  earlierTurns[0] ?? (turn.isToolContinuation ? turn : undefined)

/** Resolves to undefined, too, where it is known that an embedding model or MongoDB does not answer. */
async function findFirst(
  backend: ProxyRecallBackend,
  caller: Caller,
  { turns, session, space, bounds, asOf, filter }: RecallQuery,
  { breaker, orUndefined }: ReturnType<typeof timedSteps>,
): Promise<FoundContext | void> {
  if (!space.ready || (breaker?.state ?? 'closed') !== 'closed') return undefined
  const finding = findContext(backend, caller, {
    messages: turns,
    session,
    embeddings: space.model,
    density: bounds.density,
    limit: bounds.limit,
    tiers: undefined,
    importance: undefined,
    asOf,
    metadata: filter,
  })
  return orUndefined(finding)
}

/** A promise, so that a failure is one of a step. */
const render = async (...parameters: Parameters<typeof renderContext>): Promise<PreparedContext> =>
  renderContext(...parameters)

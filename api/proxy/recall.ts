import { createHash } from 'node:crypto'
import type { EarlierTurn, ProxyRequest, UserTurn } from '#api/proxy/dialects/dialect.ts'
import {
  inPlace,
  noEarlierBlocks,
  rebuildBlock,
  recallEarlierTurns,
  saveTurn,
  toRecalledTurn,
  type BlockBackend,
  type EarlierBlock,
  type EarlierBlocks,
  type Partition,
} from '#api/proxy/earlier-turns.ts'
import { withRecallTimeout, type EmbeddingSpace } from '#api/proxy/embedding-space.ts'
import type { ContextBounds } from '#api/proxy/switches.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Backend } from '#shared/backend.ts'
import type { Condition } from '#shared/domain/condition.ts'
import {
  findContext,
  renderContext,
  type FoundContext,
  type PreparedContext,
} from '#shared/vault/read/prepare/prepare.ts'
import type {
  RecalledTurn,
  StoredTurn,
  TurnKey,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'

/** What a call reads of memory. */
export type RecallUse = {
  /** It reads memory, if only the blocks of earlier turns. */
  retrieves: boolean
  /** The call is a program's own: nothing is recalled for it or stored of it. */
  aside: ProxyRequest['aside']
  session: string | null
  space: EmbeddingSpace
  contextBounds: ContextBounds
  /** Epoch ms: later memories are unknown, and ages are counted from it. */
  asOf: number | undefined
  /** Memories that do not meet it are left out. */
  filter: Condition | undefined
  /** The model is told where nothing is found for what only memory could answer. */
  tellsAbsence: boolean
  /** The id in the vault of the turn with such a fingerprint. */
  toTurnId(fingerprint: Buffer): Buffer
}

/** The block of the user's turn. */
type TurnBlock = {
  /** As it stands in its place; null where nothing relevant was found. */
  context: string | null
  /** What it was made from. */
  prepared: PreparedContext
  /** How many parts of the user's turn precede it. */
  blockIndex: number
  /** It was recalled for this call, not for an earlier one of the turn. */
  isNew: boolean
}

/** What the user's turn is told, by what became of its recall. */
type TurnRecall =
  | {
      /**
       * `off`: not requested; `none`: the user says nothing; `degraded`: the recall failed or took too long, and the call
       * continues without a block; `aside`: the call is a program's own, inside no turn with a block.
       */
      status: 'off' | 'none' | 'degraded' | 'aside'
      block: null
    }
  | {
      /** `none`: nothing relevant was found; `aside`: the call is a program's own, inside a turn with this block. */
      status: 'ok' | 'none' | 'aside'
      block: TurnBlock
    }

/** The result of a recall for a call. */
export type RecallResult = TurnRecall & {
  /** Tokens of all blocks of the prompt. */
  contextTokens: number
  /** Tags of the shared memories in them. */
  tags: readonly string[]
  /** The blocks of earlier turns, which stay where they were. */
  earlier: readonly EarlierBlock[]
  /**
   * The first turn whose block is not what the request before this one had; undefined when all are, and a provider's
   * cache is as good as without memory.
   */
  lost: EarlierTurn | UserTurn | undefined
  /** Resolves when the result is stored for the next call of the same turn; never rejects. */
  persisted: Promise<void>
}

const noBlocks = { block: null, contextTokens: 0, tags: [], earlier: [], lost: undefined }
const nothingToSave = Promise.resolve()

type RecallBackend = Pick<Backend, 'config' | 'embedders' | 'storeBreaker' | 'now'> &
  BlockBackend &
  Parameters<typeof findContext>[0]

/**
 * Recalls from core and session what is relevant to a conversation: nothing where memory may not be read, or the user
 * says nothing. An aside inside a conversation goes on from the blocks of the turns before it, so that the provider's
 * cache holds; nothing is recalled for the aside itself. Never rejects for a failure of memory.
 *
 * All calls of a turn get the same block: a call with tool results gets the block of the turn's first call, byte for
 * byte and in the same place, or none if that had none. So the provider's cache of the turn stays valid. Blocks of
 * earlier turns stay where they were, where much follows them. Memories stored since then appear from the next turn
 * on; memories deleted since then leave the blocks at once.
 *
 * | The call | What it does |
 * |---|---|
 * | first of its turn | recalls while the blocks of earlier turns are looked up |
 * | continuation with a stored recall | has that block again: see `recallAgain` |
 * | continuation without one | recalls; its turn is lost |
 * | aside | has the blocks of earlier turns, and that of the turn under way where it has one |
 */
export async function recallForCall(
  backend: RecallBackend,
  caller: Caller,
  request: ProxyRequest,
  use: RecallUse,
): Promise<RecallResult> {
  const { retrieves, aside } = use
  // Before `turns` and `earlierTurns`, which read every message: a call without memory pays for neither.
  const turn = retrieves ? request.userTurn : undefined
  if (!turn) {
    const status = aside ? 'aside' : retrieves ? 'none' : 'off'
    return { ...noBlocks, status, persisted: nothingToSave }
  }
  // Expired memories could not be removed in time.
  if (caller.keyRow.hasExpired)
    return {
      ...noBlocks,
      status: aside ? 'aside' : 'degraded',
      lost: firstTurn({ request, turn }),
      persisted: nothingToSave,
    }
  const recall = beginRecall(backend, caller, request, use, turn)
  const blocksSearch = findBlocks(recall)
  // At the same time: only a turn that goes on may have a block already.
  const isFirstCall = !aside && !turn.isToolContinuation
  const contextSearch = isFirstCall ? findContextOfTurn(recall) : undefined
  const blocks = await blocksSearch
  if (blocks.stored) {
    const repeatedRecall = await recallAgain(recall, blocks, blocks.stored)
    return aside ? { ...repeatedRecall, status: 'aside' } : repeatedRecall
  }
  const { earlier, isEarlierMissing } = blocks
  if (aside) return withEarlier({ status: 'aside', block: null }, earlier, { save: nothingToSave })

  const context = await (contextSearch ?? findContextOfTurn(recall))
  const rendering = context && render(backend, caller, context, earlier.ids)
  const prepared = rendering && (await recall.inTime(rendering))
  const { blockIndex } = turn
  const recalled = prepared
    ? toRecalledTurn(prepared.at, blockIndex, prepared)
    : toRecalledTurn(backend.now(), blockIndex)
  return withEarlier(toTurnRecall(prepared, { blockIndex, isNew: true }), earlier, {
    lost: turn.isToolContinuation ? turn : undefined,
    save: recall.save(turn, { ...recalled, isPartial: isEarlierMissing }),
  })
}

/**
 * The recall of a call whose prompt is too long with its blocks. The conversation goes on without them, so that its
 * next request is not refused as well and goes on from what the provider has cached of this one.
 */
export function dropBlocks(
  backend: Pick<Backend, 'recalledTurns' | 'log' | 'now'>,
  caller: Caller,
  request: ProxyRequest,
  use: RecallUse,
  { status, block, earlier, lost, persisted }: RecallResult,
): RecallResult {
  const { userTurn, earlierTurns } = request
  const dropped: { turn: AnyTurn; blockIndex: number }[] = [...earlier]
  const hadBlock = block !== null && block.context !== null
  if (hadBlock && userTurn) dropped.push({ turn: userTurn, blockIndex: block.blockIndex })
  const keyOf = turnKeys(caller, use)
  const save = ({ turn, blockIndex }: (typeof dropped)[number]): Promise<void> =>
    saveTurn(backend, caller, keyOf(turn), toRecalledTurn(backend.now(), blockIndex))
  const lostEarlier = earlierTurns.find(turn => turn === lost || turn === earlier[0]?.turn)
  const isOwnLost = hadBlock && userTurn?.isToolContinuation
  return {
    ...noBlocks,
    status: status === 'aside' ? status : 'degraded',
    lost: lostEarlier ?? (isOwnLost ? userTurn : lost),
    persisted: persisted.then(() => Promise.all(dropped.map(save))).then(() => {}),
  }
}

/** A recall under way. */
type Recall = {
  backend: RecallBackend
  caller: Caller
  request: ProxyRequest
  use: RecallUse
  turn: UserTurn
  partition: Partition
  keyOf(turn: AnyTurn): TurnKey
  save(turn: AnyTurn, recalled: RecalledTurn): Promise<void>
  /** Waits for a step of the recall: undefined when it fails or takes too long, of which the breakers learn. */
  inTime<Result>(work: Promise<Result>): Promise<Result | void>
}

type AnyTurn = EarlierTurn | UserTurn

function beginRecall(
  backend: RecallBackend,
  caller: Caller,
  request: ProxyRequest,
  use: RecallUse,
  turn: UserTurn,
): Recall {
  const { log, embedders, storeBreaker } = backend
  const { session, space } = use
  const keyOf = turnKeys(caller, use)
  // Which of the two was late is what their probes find out.
  const noteTimeout = (): void => {
    embedders.breakerOf(space.model)?.failed()
    storeBreaker.failed()
  }
  return {
    backend,
    caller,
    request,
    use,
    turn,
    partition: { session, embeddings: space.model },
    keyOf,
    save: (one, recalled) => saveTurn(backend, caller, keyOf(one), recalled),
    inTime: work =>
      withRecallTimeout(backend, work, noteTimeout).catch((error: unknown) =>
        log.warn({ err: error, account: caller.account }, 'proxy.recall-failed'),
      ),
  }
}

/**
 * Where the recall of a turn is saved. Blocks of another moment or filter are of another recall: an earlier turn may
 * have a block with what came later, or what the filter leaves out.
 */
function turnKeys(
  { scope: { vault } }: Caller,
  { toTurnId, asOf, filter }: RecallUse,
): Recall['keyOf'] {
  return ({ fingerprint }) => {
    const turn = toTurnId(fingerprint)
    if (asOf === undefined && !filter) return { vault, turn }
    const hash = createHash('sha256').update(turn)
    if (asOf !== undefined) hash.update(`as of ${asOf}`)
    if (filter) hash.update(`filter ${JSON.stringify(filter)}`)
    return { vault, turn: hash.digest() }
  }
}

type FoundBlocks = {
  earlier: EarlierBlocks
  /** The blocks of earlier turns could not be looked up in time: they are missing in the prompt. */
  isEarlierMissing: boolean
  /** The turn's own recall, by one of its calls before. */
  stored: StoredTurn | undefined
}

async function findBlocks(recall: Recall): Promise<FoundBlocks> {
  const { backend, caller, request, use, turn, partition, keyOf, inTime } = recall
  const { isToolContinuation } = turn
  const { earlierTurns } = request
  // The words of an aside may belong to the turn under way, which had a block.
  const keepsLast = use.aside !== undefined
  const query = { earlierTurns, keyOf, isToolContinuation, keepsLast, partition }
  const mayBeStored = isToolContinuation || keepsLast
  const [earlier, stored] = await Promise.all([
    inTime(recallEarlierTurns(backend, caller, query)),
    mayBeStored ? inTime(backend.recalledTurns.find(keyOf(turn))) : undefined,
  ])
  return {
    earlier: earlier ?? { ...noEarlierBlocks, lost: earlierTurns[0] },
    isEarlierMissing: !earlier,
    stored: stored ?? undefined,
  }
}

/**
 * The block of the turn as its first call had it, with those of earlier turns. A recall is saved as partial when a block
 * of its prompt could not be looked up or rebuilt in time: what the provider has cached of it then lacks that block.
 *
 * | The block now | Saved again | Lost |
 * |---|---|---|
 * | whole | when it is aging, or the one saved was partial | nothing but what is lost of earlier turns |
 * | shorter, since memories were deleted or edited | yes | this turn |
 * | not rebuilt in time | yes, as partial | this turn; the next call tries again |
 * | any, where the one saved was partial | as above | from the first turn on |
 */
async function recallAgain(
  recall: Recall,
  { earlier, isEarlierMissing }: FoundBlocks,
  stored: StoredTurn,
): Promise<RecallResult> {
  const { backend, caller, turn, partition, inTime } = recall
  const hasBlock = stored.memories !== null
  const rebuilt = hasBlock
    ? await inTime(rebuildBlock(backend, caller, stored, partition))
    : undefined
  const isMissing = hasBlock && !rebuilt
  const isPartial = isEarlierMissing || isMissing
  const isChanged = isMissing || rebuilt?.isWhole === false
  const isToSave = isChanged || stored.isAging || isPartial !== stored.isPartial
  const lost = stored.isPartial
    ? firstTurn(recall)
    : (earlier.lost ?? (isChanged ? turn : undefined))
  const { blockIndex } = stored
  const turnRecall = toTurnRecall(rebuilt?.prepared, { blockIndex, isNew: false })
  const save = isToSave
    ? recall.save(turn, { ...(rebuilt?.recalled ?? stored), isPartial })
    : nothingToSave
  // `lost` has chosen between them already.
  return withEarlier(turnRecall, { ...earlier, lost: undefined }, { lost, save })
}

/** The first turn that may have had a block in a request before this one. */
const firstTurn = ({ request, turn }: Pick<Recall, 'request' | 'turn'>): RecallResult['lost'] =>
  request.earlierTurns[0] ?? (turn.isToolContinuation ? turn : undefined)

/** Finds what a turn is told of memory. Undefined, too, when the model or MongoDB is known to be away. */
async function findContextOfTurn({
  backend,
  caller,
  request,
  use: { space, contextBounds, asOf, filter, tellsAbsence },
  partition,
  inTime,
}: Recall): Promise<FoundContext | void> {
  const state = backend.embedders.breakerOf(space.model)?.state ?? 'closed'
  if (!space.ready || state !== 'closed') return undefined
  const contextSearch = findContext(backend, caller, {
    messages: request.turns,
    ...partition,
    ...contextBounds,
    tiers: undefined,
    importance: undefined,
    asOf,
    condition: filter,
    tellsAbsence,
  })
  return inTime(contextSearch)
}

/** A promise, so that a failure is one of a step. */
const render = async (...parameters: Parameters<typeof renderContext>): Promise<PreparedContext> =>
  renderContext(...parameters)

function toTurnRecall(
  prepared: PreparedContext | void,
  { blockIndex, isNew }: Pick<TurnBlock, 'blockIndex' | 'isNew'>,
): TurnRecall {
  if (!prepared) return { status: 'degraded', block: null }
  const context = prepared.context && inPlace(prepared.context, blockIndex)
  const status = prepared.memories === 0 ? 'none' : 'ok'
  return { status, block: { context, prepared, blockIndex, isNew } }
}

/** @param own.lost the first turn that is lost, where none of the earlier ones is */
function withEarlier(
  recall: TurnRecall,
  { blocks, tokens, tags, lost, persisted }: EarlierBlocks,
  own: { lost?: RecallResult['lost']; save: Promise<void> },
): RecallResult {
  const prepared = recall.block?.prepared
  return {
    ...recall,
    contextTokens: (prepared?.contextTokens ?? 0) + tokens,
    tags: [...new Set([...(prepared?.tags ?? []), ...tags])],
    earlier: blocks,
    lost: lost ?? own.lost,
    persisted: Promise.all([own.save, persisted]).then(() => {}),
  }
}

import { createHash } from 'node:crypto'
import type { EarlierTurn } from '#api/proxy/dialects/dialect.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Backend } from '#shared/backend.ts'
import { afterQuestion } from '#shared/domain/context-block.ts'
import { type PreparedContext, rebuildContext } from '#shared/vault/read/prepare/prepare.ts'
import type {
  RecalledTurn,
  StoredTurn,
  TurnKey,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'

/** The block of an earlier turn, in its place. */
export type EarlierBlock = {
  turn: EarlierTurn
  context: string
  blockIndex: number
  prepared: PreparedContext
}

/** What the earlier turns of a conversation hold. */
export type EarlierBlocks = {
  blocks: EarlierBlock[]
  /** The memories in those blocks. */
  ids: ReadonlySet<string>
  /** Tags of the shared memories among them. */
  tags: readonly string[]
  /** Tokens of the blocks. */
  tokens: number
  /**
   * The first turn that the provider may not find in its cache: its block is not what it was in the request before
   * this one, or what that request had is not known.
   */
  lost: EarlierTurn | undefined
  /** Resolves when turns are saved again; never rejects. */
  persisted: Promise<void>
}

export const noEarlierBlocks: EarlierBlocks = {
  blocks: [],
  ids: new Set(),
  tags: [],
  tokens: 0,
  lost: undefined,
  persisted: Promise.resolve(),
}

/** A block behind the user's words ends in a sentence that leads back to them. */
export const inPlace = (context: string, blockIndex: number): string =>
  blockIndex > 0 ? afterQuestion(context) : context

/** Where memories of a call are: its session, and the embedding model of its space. */
export type Partition = { session: string | null; embeddings: string }

/** A turn that the vault was asked about, and its block where the turn keeps it. */
type FoundTurn = { turn: EarlierTurn; stored: StoredTurn; rebuilt?: RebuiltBlock }

/**
 * The blocks of earlier turns, byte for byte as they were, so that the request before this one stays a prefix of it.
 * Kept are those that much follows; the others vanish with the next turn. Memories that were deleted since are missing.
 *
 * @throws what `rebuildContext` throws
 */
export async function recallEarlierTurns(
  backend: BlockBackend,
  caller: Caller,
  query: {
    earlierTurns: readonly EarlierTurn[]
    keyOf(turn: EarlierTurn): TurnKey
    /** The call continues the last turn: the request before it lacked what this one lacks. */
    isToolContinuation: boolean
    /** The last of the turns keeps its block too, whatever follows it. */
    keepsLast: boolean
    partition: Partition
  },
): Promise<EarlierBlocks> {
  const { earlierTurns, keyOf, isToolContinuation, keepsLast, partition } = query
  const last = earlierTurns.at(-1)
  const previous = isToolContinuation ? undefined : last
  const isKept = (turn: EarlierTurn): boolean => turn.isKept || (keepsLast && turn === last)
  const turnsToFind = earlierTurns.filter(turn => isKept(turn) || turn === previous)
  if (turnsToFind.length === 0) return noEarlierBlocks
  const find = async (turn: EarlierTurn): Promise<FoundTurn | undefined> => {
    const stored = await backend.recalledTurns.find(keyOf(turn))
    if (!stored?.digest || !isKept(turn)) return stored && { turn, stored }
    return { turn, stored, rebuilt: await rebuildBlock(backend, caller, stored, partition) }
  }
  const foundTurns = (await Promise.all(turnsToFind.map(find))).flatMap(one => one ?? [])
  const rebuiltTurns = foundTurns.flatMap(({ turn, stored, rebuilt: now }) =>
    now ? [{ turn, stored, ...now }] : [],
  )
  const blocks = rebuiltTurns.map(({ turn, prepared, stored: { blockIndex } }) => ({
    turn,
    context: prepared.context === null ? '' : inPlace(prepared.context, blockIndex),
    blockIndex,
    prepared,
  }))
  // What is left of a block is its block from now on.
  const saves = rebuiltTurns
    .filter(({ isWhole, stored }) => !isWhole || stored.isAging)
    .map(({ turn, recalled, stored: { isPartial } }) =>
      saveTurn(backend, caller, keyOf(turn), { ...recalled, isPartial }),
    )
  // Every call that may read memory leaves its turn behind: one without it was sent by other means.
  const previousFound = foundTurns.find(({ turn }) => turn === previous)
  const isPreviousUnknown = previous && (!previousFound || previousFound.stored.isPartial)
  const isLost = ({ turn, stored, rebuilt: now }: FoundTurn): boolean =>
    stored.digest !== null && (isKept(turn) ? !now?.isWhole : !turn.isBlockLast(stored.blockIndex))
  return {
    blocks: blocks.filter(({ context }) => context !== ''),
    ids: new Set(rebuiltTurns.flatMap(({ prepared }) => prepared.ids)),
    tags: rebuiltTurns.flatMap(({ prepared }) => prepared.tags),
    tokens: rebuiltTurns.reduce((sum, { prepared }) => sum + prepared.contextTokens, 0),
    lost: isPreviousUnknown ? earlierTurns[0] : foundTurns.find(isLost)?.turn,
    persisted: Promise.all(saves).then(() => {}),
  }
}

export type BlockBackend = Pick<Backend, 'recalledTurns' | 'log'> &
  Parameters<typeof rebuildContext>[0]

/** The block of an earlier request, as it is now. */
type RebuiltBlock = {
  prepared: PreparedContext
  /** Whether it has the same bytes. */
  isWhole: boolean
  /** What is to be saved of it from now on. */
  recalled: RecalledTurn
}

/** What is saved of a turn; without a block, of one that goes on without. */
export const toRecalledTurn = (
  at: number,
  blockIndex: number,
  block?: Pick<PreparedContext, 'ids' | 'lines' | 'context'>,
): RecalledTurn => ({
  memories: block?.ids ?? null,
  lines: block?.lines ?? [],
  at,
  blockIndex,
  digest: block?.context == null ? null : digestOf(block.context),
  isPartial: false,
})

/** 128 bits distinguish blocks. */
const digestOf = (context: string): Buffer =>
  createHash('sha256').update(context).digest().subarray(0, 16)

/** @throws what `rebuildContext` throws */
export async function rebuildBlock(
  backend: BlockBackend,
  caller: Caller,
  { memories, lines, at, blockIndex, digest }: StoredTurn,
  partition: Partition,
): Promise<RebuiltBlock> {
  const ids = memories ?? []
  const isAbsence = ids.length === 0 && digest !== null
  const storedBlock = { ids, lines, at, isAbsence }
  const prepared = await rebuildContext(backend, caller, storedBlock, partition)
  const recalled = toRecalledTurn(prepared.at, blockIndex, prepared)
  const digestNow = recalled.digest
  const isWhole = digest === null ? digestNow === null : digestNow?.equals(digest) === true
  return { prepared, isWhole, recalled }
}

/** Never rejects: what is not saved is recalled again. */
export const saveTurn = (
  backend: Pick<Backend, 'recalledTurns' | 'log'>,
  { account }: Pick<Caller, 'account'>,
  key: TurnKey,
  turn: RecalledTurn,
): Promise<void> =>
  backend.recalledTurns
    .save(key, turn)
    .catch((error: unknown) => backend.log.warn({ err: error, account }, 'proxy.recall-failed'))

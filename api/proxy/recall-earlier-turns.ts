import type { EarlierTurn } from '#api/proxy/dialects/dialect.ts'
import type { Caller } from '#shared/access/caller.ts'
import { afterQuestion } from '#shared/domain/context-block.ts'
import { type PreparedContext, rebuildContext } from '#shared/vault/read/prepare/prepare.ts'
import type {
  StoredTurn,
  RecalledTurn,
  TurnKey,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'
import { createHash } from 'node:crypto'
import type { Backend } from '#shared/backend.ts'

/** The block of an earlier turn, in its place. */
export type EarlierBlock = {
  turn: EarlierTurn
  context: string
  blockIndex: number
  prepared: PreparedContext
}

/** What earlier turns of a conversation hold. */
export type EarlierBlocks = {
  blocks: EarlierBlock[]
  /** The memories in those blocks. */
  ids: ReadonlySet<string>
  /** Tags of the shared memories among them. */
  tags: readonly string[]
  /** Tokens of the blocks. */
  tokens: number
  /**
   * The first turn that the provider may not find in its cache: its block is not what it was in the request
   * before this one, or what that request had is not known.
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

type EarlierTurnsQuery = {
  turns: readonly EarlierTurn[]
  /** Identifies a turn in the caller's vault. */
  toTurnId(fingerprint: Buffer): Buffer
  /** Whether the call continues the last turn: the request before it lacked what this one lacks. */
  isToolContinuation: boolean
  /** Whether the last of the turns keeps its block too, whatever follows it. */
  keepsLast: boolean
  session: string | null
  embeddings: string
}

/** A turn that the vault was asked about, and its block where the turn keeps it. */
type FoundTurn = { turn: EarlierTurn; stored: StoredTurn; rebuilt?: RebuiltBlock }

/**
 * The blocks of earlier turns, byte for byte as they were, so that the request before this one stays a
 * prefix of it. Kept are those that much follows; the others vanish with the next turn. Memories that were
 * deleted since are missing.
 *
 * @throws what `rebuildContext` throws
 */
export async function recallEarlierTurns(
  backend: StoredBlockBackend,
  caller: Caller,
  query: EarlierTurnsQuery,
): Promise<EarlierBlocks> {
  const { turns, toTurnId, isToolContinuation, keepsLast, session, embeddings } = query
  const last = turns.at(-1)
  const previous = isToolContinuation ? undefined : last
  const isKept = (turn: EarlierTurn): boolean => turn.isKept || (keepsLast && turn === last)
  const asked = turns.filter(turn => isKept(turn) || turn === previous)
  if (asked.length === 0) return noEarlierBlocks
  const keyOf = ({ fingerprint }: EarlierTurn) => ({
    vault: caller.scope.vault,
    turn: toTurnId(fingerprint),
  })
  const find = async (turn: EarlierTurn): Promise<FoundTurn | undefined> => {
    const stored = await backend.recalledTurns.find(keyOf(turn))
    if (!stored?.memories?.length || !isKept(turn)) return stored && { turn, stored }
    const partition = { session, embeddings }
    return { turn, stored, rebuilt: await rebuildBlock(backend, caller, stored, partition) }
  }
  const found = (await Promise.all(asked.map(find))).flatMap(one => one ?? [])
  const rebuilt = found.flatMap(({ turn, stored, rebuilt: now }) =>
    now ? [{ turn, stored, now }] : [],
  )
  const blocks = rebuilt.map(({ turn, now: { prepared }, stored: { place } }) => ({
    turn,
    context: prepared.context === null ? '' : inPlace(prepared.context, place),
    blockIndex: place,
    prepared,
  }))
  const changed = rebuilt.filter(({ now, stored }) => !now.isWhole || stored.isAging)
  // What is left of a block is its block from now on.
  const saves = changed.map(({ turn, now, stored: { isPartial } }) =>
    saveTurn(backend, caller, keyOf(turn), { ...now.turn, isPartial }),
  )
  return {
    blocks: blocks.filter(({ context }) => context !== ''),
    ids: new Set(rebuilt.flatMap(({ now }) => now.prepared.ids)),
    tags: rebuilt.flatMap(({ now }) => now.prepared.tags),
    tokens: rebuilt.reduce((sum, { now }) => sum + now.prepared.contextTokens, 0),
    lost: firstLost(found, { first: turns[0], previous, isKept }),
    persisted: Promise.all(saves).then(() => {}),
  }
}

/** Every call that may read memory leaves its turn behind: one without it was sent by other means. */
function firstLost(
  found: readonly FoundTurn[],
  {
    first,
    previous,
    isKept,
  }: {
    first: EarlierTurn | undefined
    previous: EarlierTurn | undefined
    isKept(turn: EarlierTurn): boolean
  },
): EarlierTurn | undefined {
  const before = found.find(({ turn }) => turn === previous)
  if (previous && (!before || before.stored.isPartial)) return first
  return found.find(({ turn, stored, rebuilt }) => {
    if (!stored.memories?.length) return false
    return isKept(turn) ? !rebuilt?.isWhole : !turn.isBlockLast(stored.place)
  })?.turn
}

export type StoredBlockBackend = Pick<Backend, 'recalledTurns' | 'log'> &
  Parameters<typeof rebuildContext>[0]

/** The block of an earlier request, as it is now. */
export type RebuiltBlock = {
  prepared: PreparedContext
  /** Whether it has the same bytes. */
  isWhole: boolean
  /** The turn as it is to be saved from now on. */
  turn: RecalledTurn
}

/** What is saved of a block that a turn is sent with. */
export const toRecalledTurn = (
  { ids, lines, at, context }: Pick<PreparedContext, 'ids' | 'lines' | 'at' | 'context'>,
  place: number,
): RecalledTurn => ({
  memories: ids,
  lines,
  at,
  place,
  digest: context === null ? null : digestOf(context),
  isPartial: false,
})

/** A turn that goes on without a block. */
export const withoutBlock = (at: number, place: number): RecalledTurn => ({
  memories: null,
  lines: [],
  at,
  place,
  digest: null,
  isPartial: false,
})

/** 128 bits tell blocks apart. */
const digestOf = (context: string): Buffer =>
  createHash('sha256').update(context).digest().subarray(0, 16)

/** @throws what `rebuildContext` throws */
export async function rebuildBlock(
  backend: StoredBlockBackend,
  caller: Caller,
  { memories, lines, at, place, digest }: StoredTurn,
  partition: { session: string | null; embeddings: string },
): Promise<RebuiltBlock> {
  const ids = memories ?? []
  const prepared = await rebuildContext(backend, caller, { ids, lines, at }, partition)
  const turn = toRecalledTurn(prepared, place)
  const isWhole = digest === null ? turn.digest === null : turn.digest?.equals(digest) === true
  return { prepared, isWhole, turn }
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

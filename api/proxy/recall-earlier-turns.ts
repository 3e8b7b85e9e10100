import type { EarlierTurn } from '#api/proxy/dialects/dialect.ts'
import {
  rebuildBlock,
  saveTurn,
  type RebuiltBlock,
  type StoredBlockBackend,
} from '#api/proxy/stored-block.ts'
import type { Caller } from '#shared/access/caller.ts'
import { afterQuestion } from '#shared/domain/context-block.ts'
import type { PreparedContext } from '#shared/vault/read/prepare/prepare.ts'
import type { StoredTurn } from '#shared/vault/read/traces/recalled-turns.postgres.ts'

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

import { createHash } from 'node:crypto'
import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { rebuildContext, type PreparedContext } from '#shared/vault/read/prepare/prepare.ts'
import type {
  RecalledTurn,
  StoredTurn,
  TurnKey,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'

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

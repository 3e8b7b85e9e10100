import { promiseChunks } from '#shared/vault/bulk/accept.ts'
import { endFile } from '#shared/vault/bulk/outcome.ts'
import { debtShare, type Decided } from '#shared/vault/bulk/plan.ts'
import { errorsMax } from '#shared/domain/file-lines.ts'
import { sessionEpochIn } from '#shared/vault/bulk/upload.ts'
import { settleChunk, tallyOf, type Chunk } from '#shared/vault/bulk/chunks.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { lockVault, sessionEpochsOf } from '#shared/vault/base/vault-lock.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { DebtChange, PlaceChange } from '#shared/domain/vault-change.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'

/**
 * Settles a chunk whose memories are in the memory store: they become visible, the debt moves, and the
 * operation goes on or ends, once however often the chunk ran. What a deletion has overtaken was never
 * visible and goes.
 */
export async function settleStoredChunk(
  { postgres, queue, memories }: { postgres: Postgres; queue: Queue; memories: Memories },
  chunk: Chunk,
  decided: readonly Decided[],
): Promise<void> {
  const written = decided.filter(({ planned }) => planned.as !== 'skip')
  const overtaken = await postgres.transaction(async tx => {
    // First of all: chunks of one vault are settled one after the other, so that one of them is the last.
    const vault = await lockVault(tx, chunk.vault)
    const sessions = [...new Set(written.flatMap(({ memory }) => memory.session ?? []))]
    const epochs = await sessionEpochsOf(tx.query, chunk, sessions)
    const isSeen = ({ memory: { session } }: Decided): boolean =>
      vault.epoch === chunk.epoch &&
      (session === null || (epochs.get(session) ?? 0) === sessionEpochIn(chunk, session))
    const seen = written.filter(isSeen)
    const counted = await settleChunk(tx.query, chunk, {
      memories: decided.length,
      stored: countOf(decided, 'new'),
      replaced: countOf(decided, 'replace'),
      skipped: countOf(decided, 'skip'),
      tokens: written.reduce((sum, { memory }) => sum + memory.tokens, 0),
    })
    if (!counted) return []
    if (seen.length > 0) await changeVault(tx, chunk.vault, changesOf(seen), debtOf(seen))
    await goOn({ queue }, tx, chunk, vault.pending)
    return written.filter(item => !isSeen(item))
  })
  if (overtaken.length === 0) return
  await memories.discard(
    chunk,
    overtaken.map(({ planned }) => planned.id),
  )
}

/** The next chunk, or the end. */
async function goOn(
  { queue }: { queue: Queue },
  tx: Transaction,
  { file, operation, vault, kind }: Chunk,
  pending: number,
): Promise<void> {
  const tally = await tallyOf(tx.query, file, errorsMax)
  if (tally.left === 0) return endFile(tx, { file, operation, vault, kind }, tally)
  await reportProgress(tx.query, operation, { done: tally.lines })
  if (kind === 'import')
    await promiseChunks({ queue }, tx, { kind, operation, vault, file, pending })
}

const countOf = (decided: readonly Decided[], as: Decided['planned']['as']): number =>
  decided.filter(({ planned }) => planned.as === as).length

/** Ids that are new or changed, by place; and those that went from one place to another. */
function changesOf(written: readonly Decided[]): PlaceChange[] {
  const stored = Map.groupBy(written, ({ memory }) => memory.session)
  const moved = Map.groupBy(
    written.filter(({ planned, memory }) => planned.was && planned.was.session !== memory.session),
    ({ planned }) => planned.was!.session,
  )
  return [...new Set([...stored.keys(), ...moved.keys()])].map(session => ({
    session,
    stored: idsOf(stored.get(session)),
    removed: idsOf(moved.get(session)),
  }))
}

const idsOf = (items: readonly Decided[] = []): string[] => items.map(({ planned }) => planned.id)

function debtOf(written: readonly Decided[]): DebtChange {
  const sum = { rawUnits: 0, rawTokens: 0, tier2Count: 0, tier2Importance: 0, tier2Tokens: 0 }
  const add = (share: DebtChange, sign: 1 | -1): void => {
    for (const field of Object.keys(sum) as (keyof DebtChange)[]) {
      sum[field] += sign * (share[field] ?? 0)
    }
  }
  for (const { memory, planned } of written) {
    add(debtShare({ ...memory, consolidated: memory.restored?.consolidated ?? false }), 1)
    if (planned.was) add(planned.was.debt, -1)
  }
  return sum
}

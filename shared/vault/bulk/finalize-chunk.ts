import { fileJobs } from '#shared/vault/bulk/accept-file.ts'
import { finishFile } from '#shared/vault/bulk/finish-file.ts'
import { debtContribution, type PlannedItem } from '#shared/vault/bulk/plan-items.ts'
import { reportedErrorsMax } from '#shared/domain/file-types.ts'
import { acceptedSessionEpoch } from '#shared/vault/bulk/upload-lines.ts'
import {
  cutBulkChunk,
  finalizeBulkChunk,
  tallyBulkFile,
  type BulkChunk,
} from '#shared/vault/bulk/chunks.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { lockVault, findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { DebtChange, PartitionChange } from '#shared/domain/vault-change.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'

/**
 * Settles a chunk whose memories are written: makes them visible, changes the debt, and continues or ends
 * the operation; once, however many times the chunk runs. Memories whose vault or session was cleared in
 * the meantime were never visible: they are deleted, and neither told as stored nor billed.
 */
export async function finalizeStoredChunk(
  { postgres, queue, memories }: { postgres: Postgres; queue: Queue; memories: MemoryStore },
  chunk: BulkChunk,
  plannedItems: readonly PlannedItem[],
): Promise<void> {
  const written = plannedItems.filter(({ planned }) => planned.as !== 'skip')
  const invalidated = await postgres.transaction(async tx => {
    // The lock comes first: chunks of a vault are settled one after the other, so exactly one is the last.
    const vault = await lockVault(tx, chunk.vault)
    const sessions = [...new Set(written.flatMap(({ memory }) => memory.session ?? []))]
    const epochs = await findSessionEpochs(tx.query, chunk, sessions)
    const isVisible = ({ memory: { session } }: PlannedItem): boolean =>
      vault.epoch === chunk.epoch &&
      (session === null || (epochs.get(session) ?? 0) === acceptedSessionEpoch(chunk, session))
    const visible = written.filter(isVisible)
    const isFirstRun = await finalizeBulkChunk(tx.query, chunk, {
      memories: plannedItems.length,
      stored: countPlanned(visible, 'new'),
      replaced: countPlanned(visible, 'replace'),
      skipped: countPlanned(plannedItems, 'skip'),
      tokens: visible.reduce((sum, { memory }) => sum + memory.tokens, 0),
    })
    if (!isFirstRun) return []
    if (visible.length > 0)
      await changeVault(tx, chunk.vault, toSessionChanges(visible), sumDebtChange(visible), queue)
    await continueOrFinish({ queue }, tx, chunk, vault.pending)
    return written.filter(item => !isVisible(item))
  })
  if (invalidated.length === 0) return
  await memories.discard(
    chunk,
    invalidated.map(({ planned }) => planned.id),
  )
}

/**
 * Settles a chunk of a cancelled file without storing it.
 *
 * @returns false when an earlier run has begun to store it: that is to be finished.
 */
export async function cutChunk(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  chunk: BulkChunk,
): Promise<boolean> {
  return postgres.transaction(async tx => {
    const { pending } = await lockVault(tx, chunk.vault)
    if (!(await cutBulkChunk(tx.query, chunk))) return false
    await continueOrFinish({ queue }, tx, chunk, pending)
    return true
  })
}

/** Sends the next chunk of an import; ends the operation after the last chunk. */
async function continueOrFinish(
  { queue }: { queue: Queue },
  tx: Transaction,
  { file, operation, vault, kind }: BulkChunk,
  pending: number,
): Promise<void> {
  const tally = await tallyBulkFile(tx.query, file, reportedErrorsMax)
  if (tally.left === 0) return finishFile(tx, queue, { file, operation, vault, kind }, tally)
  await reportProgress(tx.query, operation, { done: tally.lines })
  if (kind !== 'import') return
  await queue.send(tx, kind, await fileJobs(tx.query, { kind, operation, vault, file, pending }))
}

const countPlanned = (items: readonly PlannedItem[], as: PlannedItem['planned']['as']): number =>
  items.filter(({ planned }) => planned.as === as).length

/** New and changed ids by session, and ids that an import moved out of a session. */
function toSessionChanges(written: readonly PlannedItem[]): PartitionChange[] {
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

const idsOf = (items: readonly PlannedItem[] = []): string[] =>
  items.map(({ planned }) => planned.id)

function sumDebtChange(written: readonly PlannedItem[]): DebtChange {
  const sum = { rawUnits: 0, rawTokens: 0, tier2Count: 0, tier2Importance: 0, tier2Tokens: 0 }
  const add = (share: DebtChange, sign: 1 | -1): void => {
    for (const field of Object.keys(sum) as (keyof DebtChange)[]) {
      sum[field] += sign * (share[field] ?? 0)
    }
  }
  for (const { memory, planned } of written) {
    add(debtContribution({ ...memory, consolidated: memory.restored?.consolidated ?? false }), 1)
    if (planned.was) add(planned.was.debt, -1)
  }
  return sum
}

import { addDebt, debtOf } from '#shared/vault/base/debt-of-memories.ts'
import { settleStep, type StepResult } from '#shared/vault/base/long-operation.ts'
import type { LineError } from '#shared/domain/file-types.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { DebtChange, PartitionChange } from '#shared/domain/vault-change.ts'
import type { StepTally } from '#shared/operations/operation-steps.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { findSessionEpochs, lockVault } from '#shared/vault/base/vaults.postgres.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import type { PlannedItem } from '#shared/vault/bulk/plan-items.ts'
import { acceptedSessionEpoch } from '#shared/vault/bulk/upload-lines.ts'

/** How far a file is, and how it ended. */
export const ofFile: Pick<StepResult<BulkChunk>, 'progress' | 'summarize'> = {
  progress: ({ counts }) => counts.lines!,
  summarize: summarizeFile,
}

/**
 * Settles a chunk whose memories are written. Memories whose vault or session was cleared meanwhile were never
 * visible: they are deleted, and neither reported nor billed.
 */
export async function finalizeStoredChunk(
  { postgres, queue, memories }: { postgres: Postgres; queue: Queue; memories: MemoryStore },
  chunk: BulkChunk,
  plannedItems: readonly PlannedItem[],
  picturesLeftOut: number,
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
    const isFirstRun = await settleStep(tx, queue, chunk, {
      ...ofFile,
      counts: {
        memories: plannedItems.length,
        stored: countPlanned(visible, 'new'),
        replaced: countPlanned(visible, 'replace'),
        skipped: countPlanned(plannedItems, 'skip'),
        tokens: visible.reduce((sum, { memory }) => sum + memory.tokens, 0),
        picturesLeftOut,
      },
      changes: toSessionChanges(visible),
      debt: sumDebtChange(visible),
      last: chunk.document === undefined ? undefined : { removesEarlier: true },
    })
    return isFirstRun ? written.filter(item => !isVisible(item)) : []
  })
  if (invalidated.length > 0) await memories.discard(chunk, idsOf(invalidated))
}

/**
 * Settles a chunk of a cancelled file without storing it; its lines count nowhere.
 *
 * @returns false when an earlier run has begun to store it: that run is to be finished.
 */
export async function cutChunk(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  chunk: BulkChunk,
): Promise<boolean> {
  return postgres.transaction(async tx => {
    await lockVault(tx, chunk.vault)
    const nothing = { counts: { lines: 0, failed: 0, cut: 1 }, errors: [], unplanned: true }
    return settleStep(tx, queue, chunk, { ...ofFile, ...nothing })
  })
}

function summarizeFile(
  { counts, errors }: StepTally,
  { kind, key, session, document }: BulkChunk,
): OperationOutcome {
  const { lines = 0, failed = 0, memories = 0, stored = 0, replaced = 0, skipped = 0 } = counts
  const shared = {
    lines,
    failed,
    stored,
    skipped,
    ...(errors.length > 0 && { errors: errors as LineError[] }),
    ...(counts.picturesLeftOut && { picturesLeftOut: counts.picturesLeftOut }),
    ...(counts.cut && { cancelled: true as const }),
  }
  const ofDocument = document !== undefined && { replaced }
  return kind === 'upload'
    ? { kind, key, inSession: session !== null, memories, ...ofDocument, ...shared }
    : { kind: 'import', replaced, ...shared }
}

const countPlanned = (items: readonly PlannedItem[], as: PlannedItem['planned']['as']): number =>
  items.filter(({ planned }) => planned.as === as).length

/** New and changed ids by session, and ids whose former text or session an import replaced. */
function toSessionChanges(written: readonly PlannedItem[]): PartitionChange[] {
  const stored = Map.groupBy(written, ({ memory }) => memory.session)
  const replaced = Map.groupBy(
    written.filter(({ planned }) => planned.was),
    ({ planned }) => planned.was!.session,
  )
  return [...new Set([...stored.keys(), ...replaced.keys()])].map(session => ({
    session,
    stored: idsOf(stored.get(session)),
    removed: idsOf(replaced.get(session)),
  }))
}

const idsOf = (items: readonly PlannedItem[] = []): string[] =>
  items.map(({ planned }) => planned.id)

function sumDebtChange(written: readonly PlannedItem[]): DebtChange {
  const added = written.map(({ memory }) => ({
    ...memory,
    consolidated: memory.restored?.consolidated ?? false,
    feedback: memory.restored?.feedback,
  }))
  const replaced = written.flatMap(({ planned }) => planned.was?.debt ?? [])
  return replaced.reduce((sum, debt) => addDebt(sum, debt, -1), debtOf(added))
}

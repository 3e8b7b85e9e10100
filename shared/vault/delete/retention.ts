import { memoryIdOf } from '#shared/core/ids.ts'
import { earliestExpiresAt, expiryFor } from '#shared/domain/expiry.ts'
import {
  applyRetention,
  countVaultMemories,
  retentionPage,
  type RetentionRow,
} from '#shared/vault/base/expiries.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { scheduleExpiries, cancelScheduledExpiries } from '#shared/vault/base/expiries.postgres.ts'
import {
  finishOperation,
  reportProgress,
  type OperationResult,
} from '#shared/operations/operation-rows.postgres.ts'
import { insertOperations, zeroUsage } from '#shared/operations/operations.postgres.ts'
import {
  advanceRetention,
  findAnyKey,
  dropRetention,
  findRetention,
  insertRetention,
  vaultsUnderRetention,
  nextVaultUnderRetention,
  putAccountRetention,
  type RetentionRun,
} from '#shared/vault/delete/retentions.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { RetentionJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Memories that are looked at together. */
const pageMax = 1_000

/**
 * Decides how long an account keeps its memories. What is stored from now on ends by it; what is there
 * follows, as an operation.
 *
 * @param operation the UUIDv7 of that
 * @returns whether there is such an operation: not when it was decided so before, or nothing can be there.
 */
export async function setAccountRetention(
  { queue }: { queue: Queue },
  tx: Transaction,
  { operation, account, days }: { operation: string; account: string; days: number | null },
): Promise<boolean> {
  if (!(await putAccountRetention(tx.query, account, days))) return false
  const key = await findAnyKey(tx.query, account)
  if (!key) return false
  const [accepted] = await insertOperations(tx, [
    {
      ...key,
      ...zeroUsage,
      id: operation,
      account,
      kind: 'retention',
      awaited: false,
      session: null,
      total: 0,
    },
  ])
  if (!accepted!.fresh) return true
  // What is decided holds already; it cannot be taken back, only decided anew.
  await reportProgress(tx.query, operation, { done: 0 })
  await insertRetention(tx.query, { operation, account, days })
  await sendStep({ queue }, tx, { operation, step: 0 })
  return true
}

type RetentionBackend = Stores & { queue: Queue }

/**
 * Gives one page of memories the end that the retention leads to, makes that visible, and sends the next
 * step or ends the operation. Safe to run any number of times, in several processes at once: a step
 * counts once, and the same memory always gets the same end. Ends early when the account has decided
 * otherwise since; another operation sees to that.
 *
 * @param isRetry an earlier run may have done part of it.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function runRetentionStep(
  backend: RetentionBackend,
  { operation, step }: RetentionJob,
  isRetry: boolean,
): Promise<void> {
  const { postgres, mongo } = backend
  const retention = await findRetention(postgres.query, operation, step)
  if (!retention) return
  if (retention.days !== retention.daysNow) return finishRetention(backend, retention, superseded)
  const vault = await nextVaultUnderRetention(postgres.query, retention)
  if (!vault) return finishRetention(backend, retention, completed(retention))

  const total = step === 0 ? await countMemories(backend, retention) : undefined
  const { rows, after } = await retentionPage(mongo, vault, retention.after, pageMax)
  const rescheduled = rows.filter(row => expiresAtUnder(row, retention) !== row.expiresAt)
  const at = earliestExpiresAt(rescheduled.map(row => expiryUnder(row, retention)))
  if (at !== undefined) {
    await scheduleExpiries(postgres.query, [{ id: operation, vault: vault.vault, expiresAt: at }])
  }
  if (rescheduled.length > 0) await applyRetention(mongo, vault, idsOf(rescheduled), retention.days)

  const looked = retention.looked + rows.length
  const changed = retention.changed + rescheduled.length
  await postgres.transaction(async tx => {
    await reportProgress(tx.query, operation, {
      done: looked,
      ...(total !== undefined && { total }),
    })
    const next = { vault: vault.vault, after, looked, changed }
    if (!(await advanceRetention(tx.query, retention, next))) return
    const changedRows = isRetry ? rows : rescheduled
    if (changedRows.length > 0) await changeVault(tx, vault.vault, toSessionChanges(changedRows))
    await cancelScheduledExpiries(tx.query, [operation])
    await sendStep(backend, tx, { operation, step: step + 1 })
  })
}

async function countMemories(
  { postgres, mongo }: RetentionBackend,
  { account }: RetentionRun,
): Promise<number> {
  let total = 0
  for (const vault of await vaultsUnderRetention(postgres.query, account)) {
    total += await countVaultMemories(mongo, vault)
  }
  return total
}

const expiryUnder = ({ expiresAsked: asked, storedAt }: RetentionRow, { days }: RetentionRun) =>
  expiryFor({ asked, days, storedAt })

const expiresAtUnder = (row: RetentionRow, retention: RetentionRun): number | undefined =>
  expiryUnder(row, retention).expiresAt

const idsOf = (rows: readonly RetentionRow[]): string[] => rows.map(({ id }) => id)

const toSessionChanges = (rows: readonly RetentionRow[]) =>
  [...Map.groupBy(rows, ({ session }) => session)].map(([session, those]) => ({
    session,
    stored: idsOf(those),
    unsaid: true,
  }))

const sendStep = ({ queue }: { queue: Queue }, tx: Transaction, job: RetentionJob): Promise<void> =>
  queue.send(tx, 'retention', [
    { id: memoryIdOf(job.operation, job.step), data: job, priority: -job.step },
  ])

async function finishRetention(
  { postgres }: { postgres: Postgres },
  { operation }: RetentionRun,
  outcome: OperationResult,
): Promise<void> {
  await postgres.transaction(async tx => {
    await finishOperation(tx.query, operation, outcome)
    await dropRetention(tx.query, operation)
  })
}

const superseded: OperationResult = {
  status: 409,
  body: { error: 'Another retention has been decided meanwhile', hint: 'It has its own operation' },
}

const completed = ({ operation, days, looked, changed }: RetentionRun): OperationResult => ({
  status: 200,
  body: {
    retention_days: days,
    memories: looked,
    changed,
    operation_id: operation,
    message: `${changed} of ${looked} memories have another end`,
  },
})

import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
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
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
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
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { NewJob, Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Memories per page. */
const pageMax = 1_000

/**
 * Sets the retention of an account. New memories expire by it from now on; an operation applies it to the
 * existing ones.
 *
 * @param operation the UUIDv7 for that operation
 * @returns `accepted` when there is such an operation; `changed` when the account has no key for it
 */
export async function setAccountRetention(
  { queue }: { queue: Queue },
  tx: Transaction,
  { operation, account, days }: { operation: string; account: string; days: number | null },
): Promise<'unchanged' | 'changed' | 'accepted'> {
  if (!(await putAccountRetention(tx.query, account, days))) return 'unchanged'
  const key = await findAnyKey(tx.query, account)
  if (!key) return 'changed'
  const accepted = await acceptOperation(tx, queue, {
    operation: {
      ...key,
      id: operation,
      account,
      kind: 'retention',
      awaited: false,
      session: null,
      total: 0,
      // The retention is in force already: it cannot be cancelled, only changed again.
      started: true,
      billing: 'never',
    },
    queueName: 'retention',
    jobs: () => [stepJob({ operation, step: 0 })],
  })
  if (accepted) await insertRetention(tx.query, { operation, account, days })
  return 'accepted'
}

type RetentionBackend = Stores & { queue: Queue }

/**
 * Sets the expiry of one page of memories by the retention, makes that visible, and sends the next step or
 * ends the operation. Safe to run any number of times, in several processes at once: a step counts once, and
 * the same memory always gets the same expiry. Ends early when the retention was changed since: that change
 * has an operation of its own.
 *
 * @param isRetry whether an earlier run may have done part of it
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
  if (!vault) {
    const { days, looked, changed } = retention
    return finishRetention(backend, retention, { kind: 'retention', days, looked, changed })
  }

  const total = step === 0 ? await countMemories(backend, retention) : undefined
  const { rows, after } = await retentionPage(mongo, vault, retention.after, pageMax)
  const rescheduled = rows.filter(row => expiresAtUnder(row, retention) !== row.expiresAt)
  const at = earliestExpiresAt(rescheduled.map(row => expiryUnder(row, retention)))
  if (at !== undefined) {
    await scheduleExpiries(postgres, [{ id: operation, vault: vault.vault, expiresAt: at }])
  }
  if (rescheduled.length > 0) await applyRetention(mongo, vault, idsOf(rescheduled), retention.days)

  const looked = retention.looked + rows.length
  const changed = retention.changed + rescheduled.length
  await postgres.transaction(async tx => {
    await lockVaults(tx, [vault.vault])
    await reportProgress(tx.query, operation, {
      done: looked,
      ...(total !== undefined && { total }),
    })
    const next = { vault: vault.vault, after, looked, changed }
    if (!(await advanceRetention(tx.query, retention, next))) return
    const changedRows = isRetry ? rows : rescheduled
    if (changedRows.length > 0) await changeVault(tx, vault.vault, toSessionChanges(changedRows))
    await cancelScheduledExpiries(tx.query, [operation])
    await backend.queue.send(tx, 'retention', [stepJob({ operation, step: step + 1 })])
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
  expiryFor({ requested: asked, days, storedAt })

const expiresAtUnder = (row: RetentionRow, retention: RetentionRun): number | undefined =>
  expiryUnder(row, retention).expiresAt

const idsOf = (rows: readonly RetentionRow[]): string[] => rows.map(({ id }) => id)

const toSessionChanges = (rows: readonly RetentionRow[]) =>
  [...Map.groupBy(rows, ({ session }) => session)].map(([session, those]) => ({
    session,
    stored: idsOf(those),
    vectorsOnly: true,
  }))

const stepJob = (job: RetentionJob): NewJob<'retention'> => ({
  id: memoryIdOf(job.operation, job.step),
  data: job,
  priority: -job.step,
})

async function finishRetention(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { operation }: RetentionRun,
  outcome: OperationOutcome,
): Promise<void> {
  await postgres.transaction(async tx => {
    await finishOperation(tx, queue, operation, outcome)
    await dropRetention(tx.query, operation)
  })
}

const superseded: OperationOutcome = {
  kind: 'failed',
  reason: 'conflict',
  error: 'Another retention has been decided since',
  hint: 'It has its own operation',
}

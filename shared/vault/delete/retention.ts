import { changesBySession } from '#shared/vault/base/vaults.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import { earliestExpiresAt, expiryFor } from '#shared/domain/expiry.ts'
import {
  applyRetention,
  countVaultMemories,
  retentionPage,
  type RetentionRow,
} from '#shared/vault/base/expiries.mongo.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { scheduleExpiries, cancelScheduledExpiries } from '#shared/vault/base/expiries.postgres.ts'
import { findStep } from '#shared/operations/operation-steps.postgres.ts'
import {
  acceptLongOperation,
  endLongOperation,
  settleStep,
} from '#shared/vault/base/long-operation.ts'
import {
  findAccountRetention,
  findAnyKey,
  vaultsUnderRetention,
  nextVaultUnderRetention,
  putAccountRetention,
  type RetentionInput,
  type RetentionRequest,
  type RetentionStep,
  type VaultUnderRetention,
} from '#shared/vault/delete/retentions.postgres.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Memories per page. */
const pageMax = 1_000

/**
 * Sets the retention of an account. New memories expire by it from now on; an operation applies it to the
 * existing ones.
 *
 * @returns `changed` when the account has no key for an operation
 */
export async function setAccountRetention(
  { queue }: { queue: Queue },
  tx: Transaction,
  { operation, account, days }: { operation: string; account: string; days: number | null },
): Promise<'unchanged' | 'changed' | 'accepted'> {
  if (!(await putAccountRetention(tx.query, account, days))) return 'unchanged'
  const key = await findAnyKey(tx.query, account)
  if (!key) return 'changed'
  const request: RetentionRequest = { days }
  const firstPage: RetentionInput = { lastVault: null, after: null }
  const accepted = {
    ...key,
    id: operation,
    account,
    kind: 'retention',
    total: 0,
    // The retention is in force already: it cannot be cancelled, only changed again.
    started: true,
    billing: 'never',
  } as const
  await acceptLongOperation(tx, queue, accepted, { request, inputs: [firstPage] })
  return 'accepted'
}

/**
 * Sets the expiry of one page of memories by the retention, makes that visible, and sends the next step or ends
 * the operation. Safe to run any number of times at once. Ends early when the retention was changed since: that
 * change has an operation of its own.
 *
 * @param isRetry whether an earlier run may have done part of it
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function runRetentionStep(
  backend: Stores & { queue: Queue },
  { operation, n }: Omit<StepJob, 'vault'>,
  isRetry: boolean,
): Promise<void> {
  const { postgres, mongo, queue } = backend
  const step = await findStep<RetentionStep>(postgres.query, operation, n)
  if (!step) return
  const { account, days } = step
  if (days !== (await findAccountRetention(postgres.query, account)))
    return postgres.transaction(tx => endLongOperation(tx, queue, operation, superseded))
  const vault = await nextVaultUnderRetention(postgres.query, step)
  const total = n === 0 ? await countMemories(backend, account) : undefined
  const { rows, after } = vault
    ? await retentionPage(mongo, vault, step.after, pageMax)
    : { rows: [], after: null }
  const rescheduled = rows.filter(row => expiryUnder(row, days).expiresAt !== row.expiresAt)
  if (vault) await reschedule(backend, operation, vault, rescheduled, days)

  await postgres.transaction(async tx => {
    await lockVaults(tx, [vault?.vault ?? step.vault])
    const isFirstRun = await settleStep(tx, queue, step, {
      counts: { looked: rows.length, changed: rescheduled.length },
      total,
      // A retry cannot know which rows an earlier run has changed, so it reports the whole page.
      changes: changesBySession(isRetry ? rows : rescheduled, stored => ({
        stored,
        vectorsOnly: true,
      })),
      ...(vault && {
        changed: vault.vault,
        next: { lastVault: vault.vault, after } satisfies RetentionInput,
      }),
      progress: ({ counts }) => counts.looked!,
      summarize: ({ counts: { looked = 0, changed = 0 } }) => ({
        kind: 'retention',
        days,
        looked,
        changed,
      }),
    })
    if (isFirstRun) await cancelScheduledExpiries(tx.query, [operation])
  })
}

/** Gives memories their new expiry, which is scheduled before it is written. */
async function reschedule(
  { postgres, mongo }: Stores & { queue: Queue },
  operation: string,
  scope: VaultUnderRetention,
  rows: readonly RetentionRow[],
  days: number | null,
): Promise<void> {
  if (rows.length === 0) return
  const expiresAt = earliestExpiresAt(rows.map(row => expiryUnder(row, days)))
  if (expiresAt !== undefined)
    await scheduleExpiries(postgres, [{ id: operation, vault: scope.vault, expiresAt }])
  await applyRetention(mongo, scope, idsOf(rows), days)
}

async function countMemories(
  { postgres, mongo }: Stores & { queue: Queue },
  account: string,
): Promise<number> {
  let total = 0
  for (const vault of await vaultsUnderRetention(postgres.query, account)) {
    total += await countVaultMemories(mongo, vault)
  }
  return total
}

const expiryUnder = ({ expiresAsked: requested, storedAt }: RetentionRow, days: number | null) =>
  expiryFor({ requested, days, storedAt })

const idsOf = (rows: readonly RetentionRow[]): string[] => rows.map(({ id }) => id)

const superseded: OperationOutcome = {
  kind: 'failed',
  reason: 'conflict',
  error: 'Another retention has been decided since',
  hint: 'It has its own operation',
}

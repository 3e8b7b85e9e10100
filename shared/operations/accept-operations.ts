import type { JobName } from '#shared/domain/jobs.ts'
import {
  insertOperations,
  type AcceptedOperation,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { NewJob, Queue } from '#shared/storage/queue/queue.ts'

/** Queued work to accept: its operation, and the jobs of one queue that do it. */
export type NewWork<Name extends JobName = JobName> = {
  operation: NewOperation
  queueName: Name
  /**
   * Makes the jobs and writes, in the same transaction, the rows they need. Not called when the
   * operation existed before.
   */
  jobs(accepted: AcceptedOperation): WorkJob<Name>[] | Promise<WorkJob<Name>[]>
}

/** Its priority is minus the vault's pending work, unless given. */
type WorkJob<Name extends JobName> = Omit<NewJob<Name>, 'priority'> &
  Partial<Pick<NewJob<Name>, 'priority'>>

/**
 * Accepts queued work: writes its operation, its bill (see `billing`) and its jobs in the caller's
 * transaction. Work whose operation existed before stays as it is, even when it was cancelled or its vault
 * was cleared: done again, it would bring back what was removed.
 *
 * @returns what the vault was; null when the operation existed before.
 */
export async function acceptOperation<Name extends JobName>(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  work: NewWork<Name>,
): Promise<AcceptedOperation | null> {
  const [accepted] = await acceptOperations(tx, queue, [work])
  return accepted!.fresh ? accepted! : null
}

/**
 * Like `acceptOperation`, for several at once.
 *
 * @param areLocked the caller has locked what `lockForAcceptance` locks
 * @returns one entry per work, in order.
 */
export async function acceptOperations(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  works: readonly NewWork[],
  { areLocked = false }: { areLocked?: boolean } = {},
): Promise<AcceptedOperation[]> {
  if (works.length === 0) return []
  const operations = works.map(({ operation }) => operation)
  // In one round trip, but two statements: the second sees what the holders of the locks have written.
  const locked = areLocked ? undefined : lockForAcceptance(tx, operations)
  const [, accepted] = await Promise.all([locked, insertOperations(tx, operations)])
  const jobsByQueue = new Map<JobName, NewJob<JobName>[]>()
  for (const [index, work] of works.entries()) {
    const state = accepted[index]!
    if (!state.fresh) continue
    const jobs = (await work.jobs(state)).map(job => ({ priority: -state.pending, ...job }))
    const queued = jobsByQueue.get(work.queueName)
    if (queued) queued.push(...jobs)
    else jobsByQueue.set(work.queueName, jobs)
  }
  for (const [name, jobs] of jobsByQueue) {
    if (jobs.length > 0) await queue.send(tx, name, jobs)
  }
  return accepted
}

/** Locks the vaults of operations to accept, and the accounts that are charged for them at once. */
export async function lockForAcceptance(
  tx: Transaction,
  operations: readonly NewOperation[],
): Promise<void> {
  const billed = operations.filter(({ billing }) => typeof billing === 'object')
  await lockVaults(tx, uniqueOf(operations, 'vault'), uniqueOf(billed, 'account'))
}

const uniqueOf = (operations: readonly NewOperation[], field: 'vault' | 'account'): string[] => [
  ...new Set(operations.map(operation => operation[field])),
]

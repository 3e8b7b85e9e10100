import { memoryIdOf } from '#shared/core/ids.ts'
import { earliestEnd, endsOf } from '#shared/domain/expiry.ts'
import {
  applyRetention,
  countKept,
  keptPage,
  type KeptMemory,
} from '#shared/vault/base/expiries.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { announceExpiries, withdrawExpiries } from '#shared/vault/base/expiries.postgres.ts'
import {
  finishOperation,
  reportProgress,
  type Outcome,
} from '#shared/operations/operation-rows.postgres.ts'
import { insertOperations, unbilled } from '#shared/operations/operations.postgres.ts'
import {
  advanceRetention,
  anyKeyOf,
  dropRetention,
  findRetention,
  insertRetention,
  keptVaults,
  nextKeptVault,
  putAccountRetention,
  type Retention,
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
export async function decideRetention(
  { queue }: { queue: Queue },
  tx: Transaction,
  { operation, account, days }: { operation: string; account: string; days: number | null },
): Promise<boolean> {
  if (!(await putAccountRetention(tx.query, account, days))) return false
  const key = await anyKeyOf(tx.query, account)
  if (!key) return false
  const [accepted] = await insertOperations(tx, [
    {
      ...key,
      ...unbilled,
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

type Keeping = Stores & { queue: Queue }

/**
 * Gives one page of memories the end that the retention leads to, makes that visible, and sends the next
 * step or ends the operation. Safe to run any number of times, in several processes at once: a step
 * counts once, and the same memory always gets the same end. Ends early when the account has decided
 * otherwise since; another operation sees to that.
 *
 * @param again an earlier run may have done part of it.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function retentionStep(
  backend: Keeping,
  { operation, step }: RetentionJob,
  again: boolean,
): Promise<void> {
  const { postgres, mongo } = backend
  const found = await findRetention(postgres.query, operation, step)
  if (!found) return
  if (found.days !== found.daysNow) return finish(backend, found, superseded)
  const vault = await nextKeptVault(postgres.query, found)
  if (!vault) return finish(backend, found, completed(found))

  const total = step === 0 ? await countAll(backend, found) : undefined
  const { rows, after } = await keptPage(mongo, vault, found.after, pageMax)
  const moving = rows.filter(row => endOf(row, found) !== row.expiresAt)
  const at = earliestEnd(moving.map(row => endsUnder(row, found)))
  if (at !== undefined) {
    await announceExpiries(postgres.query, [{ id: operation, vault: vault.vault, at }])
  }
  if (moving.length > 0) await applyRetention(mongo, vault, idsOf(moving), found.days)

  const looked = found.looked + rows.length
  const changed = found.changed + moving.length
  await postgres.transaction(async tx => {
    await reportProgress(tx.query, operation, {
      done: looked,
      ...(total !== undefined && { total }),
    })
    const next = { vault: vault.vault, after, looked, changed }
    if (!(await advanceRetention(tx.query, found, next))) return
    const told = again ? rows : moving
    if (told.length > 0) await changeVault(tx, vault.vault, changesOf(told))
    await withdrawExpiries(tx.query, [operation])
    await sendStep(backend, tx, { operation, step: step + 1 })
  })
}

async function countAll({ postgres, mongo }: Keeping, { account }: Retention): Promise<number> {
  let total = 0
  for (const vault of await keptVaults(postgres.query, account)) {
    total += await countKept(mongo, vault)
  }
  return total
}

const endsUnder = ({ expiresAsked: asked, storedAt }: KeptMemory, { days }: Retention) =>
  endsOf({ asked, days, storedAt })

const endOf = (row: KeptMemory, found: Retention): number | undefined =>
  endsUnder(row, found).expiresAt

const idsOf = (rows: readonly KeptMemory[]): string[] => rows.map(({ id }) => id)

const changesOf = (rows: readonly KeptMemory[]) =>
  [...Map.groupBy(rows, ({ session }) => session)].map(([session, those]) => ({
    session,
    stored: idsOf(those),
    unsaid: true,
  }))

const sendStep = ({ queue }: { queue: Queue }, tx: Transaction, job: RetentionJob): Promise<void> =>
  queue.send(tx, 'retention', [
    { id: memoryIdOf(job.operation, job.step), data: job, priority: -job.step },
  ])

async function finish(
  { postgres }: { postgres: Postgres },
  { operation }: Retention,
  outcome: Outcome,
): Promise<void> {
  await postgres.transaction(async tx => {
    await finishOperation(tx.query, operation, outcome)
    await dropRetention(tx.query, operation)
  })
}

const superseded: Outcome = {
  status: 409,
  body: { error: 'Another retention has been decided meanwhile', hint: 'It has its own operation' },
}

const completed = ({ operation, days, looked, changed }: Retention): Outcome => ({
  status: 200,
  body: {
    retention_days: days,
    memories: looked,
    changed,
    operation_id: operation,
    message: `${changed} of ${looked} memories have another end`,
  },
})

import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { acceptOperations, type NewWork } from '#shared/operations/accept-operations.ts'
import {
  finishOperation,
  failOperations,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { cancelClearedOperations } from '#shared/vault/base/erasures.postgres.ts'
import { changeVault, lockVault } from '#shared/vault/base/vaults.postgres.ts'
import { finalizeStored } from '#shared/vault/ingest/finalize-stored.postgres.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

const backend = await createTestBackend(t)
const { queue, config } = backend
const callers = await Promise.all(
  [1, 2, 3].map(async () => resolveCaller(backend, await buildKey(backend))),
)
await backend.postgres.query('update accounts set balance = 1000000000')

// Postgres looks for a deadlock when a lock was waited for this long; 1 s by default.
const admin = new pg.Client({ connectionString: config.databaseUrl })
await admin.connect()
t.teardown(() => admin.end())
await admin.query(`alter database ${admin.database} set deadlock_timeout = '20ms'`)
const postgres = openPostgres(config.databaseUrl, { max: 16, onError: () => {} })

/** Deadlocks in this database; connections report them when they are closed, or up to a second later. */
async function countDeadlocks(): Promise<number> {
  await delay(1_100)
  const { rows } = await admin.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0]!.deadlocks)
}

const workIn = (index: number): NewWork<'ingest'> => {
  const { account, keyHash, scope } = callers[index % callers.length]!
  const billing = { model: null, inputTokens: 1, outputTokens: 1, memoryTokens: 1 }
  const operation: NewOperation = {
    id: mintId(),
    account,
    vault: scope.vault,
    keyHash,
    kind: 'ingest',
    awaited: false,
    session: null,
    billing,
  }
  return { operation, queueName: 'ingest', jobs: () => [] }
}

/** Accepts one operation in each of two vaults, in one transaction. */
async function acceptTwo(round: number): Promise<NewOperation[]> {
  const works = [workIn(round), workIn(round + 1)]
  await postgres.transaction(tx => acceptOperations(tx, queue, works))
  return works.map(({ operation }) => operation)
}

const storedOperation = ({ id, vault }: NewOperation) => ({
  operation: id,
  vault,
  session: null,
  sessionEpoch: 0,
  ids: [crypto.randomUUID()],
  rawUnits: 1,
  rawTokens: 10,
  retentionDays: null,
})

const idsOf = (operations: readonly NewOperation[]): string[] => operations.map(({ id }) => id)

/** The ways in which operations end, each as its own callers run it. */
const endings: ((operations: NewOperation[]) => Promise<unknown>)[] = [
  ended => postgres.transaction(tx => finalizeStored(tx, ended.map(storedOperation))),
  ended => postgres.transaction(tx => failOperations(tx, queue, idsOf(ended))),
  ended => postgres.transaction(tx => cancelClearedOperations(tx, queue, idsOf(ended))),
  async ended => {
    for (const { id, vault } of ended) await changeAndFinish(id, vault)
  },
]

const changeAndFinish = (id: string, vault: string): Promise<void> =>
  postgres.transaction(async tx => {
    await lockVault(tx, vault)
    await changeVault(tx, vault, [{ session: null, stored: [crypto.randomUUID()] }])
    const outcome = { kind: 'failed', reason: 'invalid', error: 'a test', hint: '' } as const
    await finishOperation(tx, queue, id, outcome)
  })

t.test('work that is accepted and ended in the same vaults never deadlocks', async t => {
  const lanes = 12
  const rounds = 12
  const lane = async (number: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const operations = await acceptTwo(round + number)
      // The same operations end in two ways at once, as when a vault is cleared while a job stores.
      const ways = [endings[(round + number) % 4]!, endings[(round + number + 1) % 4]!]
      await Promise.all([ways[0]!(operations), ways[1]!(operations.toReversed())])
    }
  }
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)))

  const { rows } = await backend.postgres.query<{ open: number; pending: number }>(
    `select (select count(*)::int from operations where state in ('accepted', 'running')) as open,
            (select sum(pending)::int from vaults) as pending`,
  )
  t.equal(rows[0]!.pending, rows[0]!.open, 'what is pending is what has not ended')
  await postgres.close()
  t.equal(await countDeadlocks(), 0)
})

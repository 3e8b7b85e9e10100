import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { blockOfLines } from '#shared/domain/context-block.ts'
import { mintId } from '#shared/core/ids.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import { finalizeStored } from '#shared/vault/ingest/finalize-stored.postgres.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

// No worker runs: each batch is finalized by hand.
const backend = await createTestBackend(t)
const { postgres } = backend
const key = await buildKey(backend)
const caller = await resolveCaller(backend, key)

/** An accepted exchange that no worker has stored. */
async function acceptOne(expiresAt?: number, text?: string): Promise<IngestJob> {
  const operation = mintId()
  await acceptExchange(backend, caller, {
    operation,
    session: null,
    messages: [{ role: 'user', content: text ?? `the ferry ${operation} leaves at nine` }],
    model: null,
    embeddings: undefined,
    awaited: false,
  })
  const { rows } = await postgres.query<{ data: IngestJob }>(
    `update pgboss.job set state = 'active', started_on = now() where name = 'ingest' and id = $1
     returning data`,
    [operation],
  )
  const { memories, ...job } = rows[0]!.data
  return {
    ...job,
    memories: memories.map(memory => ({ ...memory, ...(expiresAt && { expiresAt }) })),
  }
}

const countJobs = async (jobs: readonly IngestJob[]): Promise<number> => {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int n from pgboss.job where name = 'ingest' and id = any($1::uuid[])`,
    [jobs.map(({ operation }) => operation)],
  )
  return rows[0]!.n
}

/** Stores jobs as the worker does: they end in the transaction that finalizes them. */
const store = (jobs: readonly IngestJob[], stores = backend, claim = 0) =>
  storeAccepted(stores, jobs, {
    again: false,
    claims: new Map(jobs.map(({ operation }) => [operation, claim])),
  })

const statesOf = async (jobs: readonly IngestJob[]): Promise<string[]> => {
  const { rows } = await postgres.query<{ state: string }>(
    'select state from operations where id = any($1::uuid[])',
    [jobs.map(({ operation }) => operation)],
  )
  return rows.map(({ state }) => state)
}

/** Finalizes jobs. @returns how often the table of operations was read as a whole, and how often by an index. */
const measureScans = (jobs: readonly IngestJob[]) =>
  postgres.transaction(async tx => {
    const readScans = async () => {
      const { rows } = await tx.query<{ scans: number; rows: number; lookups: number }>(
        `select seq_scan::int as scans, seq_tup_read::int as rows, idx_scan::int as lookups
         from pg_stat_xact_user_tables where relname = 'operations'`,
      )
      return rows[0]!
    }
    const before = await readScans()
    await finalizeStored(
      tx,
      jobs.map(({ operation, vault, memories }) => ({
        operation,
        vault,
        session: null,
        sessionEpoch: 0,
        ids: memories.map(({ id }) => id),
        rawUnits: memories.length,
        rawTokens: 10,
        retentionDays: null,
      })),
    )
    const after = await readScans()
    return {
      scans: after.scans - before.scans,
      rows: after.rows - before.rows,
      lookups: after.lookups - before.lookups,
    }
  })

t.test('jobs end in the transaction that finalizes their operations', async t => {
  const jobs = [await acceptOne(), await acceptOne()]
  const dying: Backend = {
    ...backend,
    postgres: {
      ...postgres,
      transaction: work =>
        postgres.transaction(async ({ query }) => {
          await work({ query, commit() {} })
          throw new Error('the process ends here')
        }),
    },
  }
  await t.rejects(store(jobs, dying), { message: 'the process ends here' })
  t.equal(await countJobs(jobs), 2, 'both wait for the next try')
  t.same(await statesOf(jobs), ['accepted', 'accepted'])

  t.same(await store(jobs), new Set(jobs.map(({ operation }) => operation)))
  t.equal(await countJobs(jobs), 0)
  t.same(await statesOf(jobs), ['done', 'done'])
})

t.test('a job that leaves something to do, or is another worker’s, does not end in it', async t => {
  const expired = await acceptOne(Date.now() - 1_000)
  const whole = await acceptOne()
  const ended = await store([expired, whole])
  t.same(ended, new Set([whole.operation]), 'a tombstone is still to be reduced')
  t.equal(await countJobs([expired]), 1)
  t.same(await statesOf([expired]), ['done'])

  const taken = await acceptOne()
  t.same(await store([taken], backend, 1), new Set())
  t.equal(await countJobs([taken]), 1)
  t.same(await statesOf([taken]), ['done'])
})

t.test('a batch is finalized by its ids, however many operations wait', async t => {
  const jobs = await Promise.all(Array.from({ length: 20 }, () => acceptOne()))
  // A backlog that Postgres has not counted yet: its planner expects few rows of any state.
  await postgres.query(
    `insert into operations (id, account, vault, key_hash, kind, epoch, awaited, progress_total)
     select gen_random_uuid(), account, vault, key_hash, kind, epoch, false, 1
     from operations, generate_series(1, 20000) where id = $1`,
    [jobs[0]!.operation],
  )
  const { scans, rows } = await measureScans(jobs)
  t.same({ scans, rows }, { scans: 0, rows: 0 })
  t.same(new Set(await statesOf(jobs)), new Set(['done']))
})

t.test('a batch looks up each operation once, whatever accounts there are', async t => {
  const jobs = await Promise.all(Array.from({ length: 20 }, () => acceptOne()))
  await postgres.query(
    `insert into accounts (id, email)
     select gen_random_uuid(), 'other-' || n || '@example.com' from generate_series(1, 10) n`,
  )
  await postgres.query('analyze accounts, operations, vaults')
  const { lookups } = await measureScans(jobs)
  t.ok(lookups <= 4 * jobs.length, `${lookups} lookups`)
  t.same(new Set(await statesOf(jobs)), new Set(['done']))
})

t.test('what makes no memory visible does not have the vault read again', async t => {
  const { base } = await startTestApi(t, backend)
  const client = createTestClient(base, key)
  const search = async (query: string) => {
    const { status, body } = await client.post('/v1/memory/search', { query, limit: 1 })
    t.equal(status, 200)
    return body.memories[0].content
  }
  const readRevision = async () => (await resolveCaller(backend, key)).scope.revision
  const echo = blockOfLines(['[1 day ago · 2026-11-24 10:00 UTC · user] The plan is empty.'])
  const overtaken = async () => ({ ...(await acceptOne()), session: 's', sessionEpoch: 7 })

  await store([await acceptOne()])
  await search('ferry')
  const { loads } = backend.vaultIndexes.stats()
  const revision = await readRevision()
  await store([await acceptOne(undefined, echo)])
  await store([await overtaken()])
  await store([await acceptOne(Date.now() - 1_000)])
  t.equal(await readRevision(), revision)

  const text = 'The heron nests on the chimney.'
  await store([
    await acceptOne(undefined, echo),
    await acceptOne(undefined, text),
    await overtaken(),
  ])
  t.equal(await readRevision(), revision + 1)
  t.equal(await search('heron'), text)
  t.equal(backend.vaultIndexes.stats().loads, loads)
})

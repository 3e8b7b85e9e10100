import { MongoNetworkError } from 'mongodb'
import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import { raiseEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { applyCommit } from '#shared/vault/consolidate/apply-commit.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { queuedRowsWith } from '#test/support/checks/observe-jobs.ts'
import {
  readUsageEvents,
  checkOut,
  commit,
  ingestTexts,
} from '#test/support/start/consolidation.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { jobHandlers } from '#workers/handlers.ts'
import type { CommitJob } from '#shared/domain/job-payloads.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: ['ingest'] })

const entries = [{ text: 'The user adopted a kitten, Ada.', importance: 6 }]

/** A vault with a batch of two memories lent. */
async function lentVault() {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await ingestTexts(client, ['We adopted a kitten', 'She is called Ada'])
  const { body } = await checkOut(client)
  const batch = body.batch_id as string
  const { rows } = await backend.postgres.query<{ vault: string }>(
    'select vault from leases where batch = $1',
    [batch],
  )
  return { client, key, batch, vault: rows[0]!.vault }
}

/** The same backend, where something happens first whenever reflections are about to be stored. */
function withBeforeInsert(happens: () => void | Promise<void>): Backend {
  const memories = new Proxy(backend.mongo.memories, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (typeof value !== 'function') return value
      if (name !== 'insertMany') return value.bind(target) as unknown
      return async (...args: unknown[]) => {
        await happens()
        return value.apply(target, args) as unknown
      }
    },
  })
  return { ...backend, mongo: { ...backend.mongo, memories } }
}

const promisedJob = async (batch: string): Promise<Job<'commit-apply'>> => {
  const { rows } = await backend.postgres.query<{ id: string; data: CommitJob }>(
    `select id, data from pgboss.job where name = 'commit-apply' and data->>'batch' = $1`,
    [batch],
  )
  const signal = new AbortController().signal
  return { ...rows[0]!, claim: 1, signal, isRetry: true, isLastTry: false }
}

const reflectionsOf = (vault: string): Promise<number> =>
  backend.mongo.memories.countDocuments({ vault: { $eq: vault }, tier: 2 })

t.test('a memory store that is away does not undo a commit: the job finishes it', async t => {
  const { client, key, batch, vault } = await lentVault()
  let away = true
  const ailing = withBeforeInsert(() => {
    if (away) throw new MongoNetworkError('told to be away')
  })
  const { status, body } = await commit(await startTestApi(t, ailing, key), batch, entries)
  t.equal(status, 200)
  t.match(body, { committed: true, already_committed: false, sources_consolidated: 2 })
  t.equal(await reflectionsOf(vault), 0)
  t.equal((await checkOut(client)).body.batch_id, null, 'its sources stay lent')

  const job = await promisedJob(batch)
  t.match(await jobHandlers['commit-apply'](ailing, [job]), [
    { id: job.id, status: 'retry', error: /out of reach/ },
  ])
  away = false
  const done = { id: job.id, status: 'done', isRemoved: true }
  t.same(await jobHandlers['commit-apply'](ailing, [job]), [done])
  t.equal(await reflectionsOf(vault), 1)
  t.match(await commit(client, batch, entries), {
    status: 200,
    body: { already_committed: true, created: body.created, sources_consolidated: 2 },
  })
  t.equal((await readUsageEvents(backend, vault, 'commit')).length, 1)
})

t.test('missing: a deletion that overtakes a commit wins, and nothing of it remains', async t => {
  const { key, batch, vault } = await lentVault()
  const overtaken = withBeforeInsert(() =>
    backend.postgres.transaction(async tx => void (await raiseEpoch(tx, vault))),
  )
  t.match(await commit(await startTestApi(t, overtaken, key), batch, entries), { status: 404 })
  t.equal(await reflectionsOf(vault), 0)
  const { rows } = await backend.postgres.query(
    `select l.batch, v.tier2_count from vaults v left join leases l on l.vault = v.id
     where v.id = $1`,
    [vault],
  )
  t.same(rows, [{ batch: null, tier2_count: 0 }])
  const job = await promisedJob(batch)
  t.same(
    await jobHandlers['commit-apply'](backend, [job]),
    [{ id: job.id, status: 'done', isRemoved: true }],
    'the job finds nothing',
  )
  t.equal(await reflectionsOf(vault), 0)
})

t.test('twenty runs of the same job at once count once', async t => {
  const { client, key, batch, vault } = await lentVault()
  const ailing = withBeforeInsert(() => {
    throw new MongoNetworkError('told to be away')
  })
  await commit(await startTestApi(t, ailing, key), batch, entries)
  const { data } = await promisedJob(batch)
  const counts = await Promise.all(Array.from({ length: 20 }, () => applyCommit(backend, data)))
  t.same(new Set(counts), new Set([2]))
  t.equal(await reflectionsOf(vault), 1)
  const { body } = await commit(client, batch, entries)
  t.match(body.reflection.unconsolidated, {
    raw: { units: 0, est_tokens: 0 },
    tier2: { count: 1, importance: 6 },
  })
})

t.test('a reflection that was deleted is not brought back by a late run', async t => {
  const { client, batch, vault } = await lentVault()
  const { body } = await commit(client, batch, entries)
  await backend.mongo.memories.deleteOne({ vault, _id: body.created[0].id })
  const { data } = await promisedJob(batch)
  t.equal(await applyCommit(backend, data), 2)
  t.equal(await reflectionsOf(vault), 0)
})

t.test('with workers running, what a request left undone is done within seconds', async t => {
  const { key, client, batch, vault } = await lentVault()
  const ailing = withBeforeInsert(() => {
    throw new MongoNetworkError('told to be away')
  })
  await commit(await startTestApi(t, ailing, key), batch, entries)
  await startJobWorkers(backend, 'commit-apply')
  await waitUntil('stored by the job', async () => (await reflectionsOf(vault)) === 1)
  t.match((await commit(client, batch, entries)).body, { already_committed: true })
  const kept = () => queuedRowsWith(backend, batch)
  await waitUntil('no job holds its texts', async () => (await kept()).length === 0)
})

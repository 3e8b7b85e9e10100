import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import {
  abandonClearing,
  acceptClearing,
  finishClearing,
  sweepCleared,
} from '#shared/vault/delete/clear-vault.ts'
import { dueErasures } from '#shared/vault/base/erasures.postgres.ts'
import { mintId } from '#shared/core/ids.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { makeErasuresDue } from '#test/support/checks/alter.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { jobData } from '#test/support/checks/observe-jobs.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import type { ClearJob, ClearedRange } from '#shared/domain/job-payloads.ts'
import { setOperation, startJob } from '#test/support/checks/alter-jobs.ts'
import { vaultRow } from '#test/support/checks/observe.ts'

const backend = await createTestBackend(t)
const api = await startTestApi(t, backend)
const { signal } = new AbortController()

/** Accepts a clearing; no worker takes it. @returns its job. */
async function cleared(key: string, session: string | null = null): Promise<ClearJob> {
  const operation = mintId()
  const caller = await resolveCaller(backend, key)
  await acceptClearing(backend, caller, { operation, session, reset: false, awaited: false })
  return jobData(backend, operation)
}

const ingest = async (key: string, content: string, session?: string): Promise<string> => {
  const { body } = await createTestClient(api.base, key).post('/v1/memory/ingest', {
    messages: [{ role: 'user', content }],
    ...(session && { session_id: session }),
  })
  return body.operation_id
}

const one = async <Row extends Record<string, unknown>>(
  text: string,
  ...values: unknown[]
): Promise<Row> => (await backend.postgres.query<Row>(text, values)).rows[0]!

const operation = (id: string) =>
  one<{ state: string; outcome: { deleted: number } | null }>(
    'select state, outcome from operations where id = $1',
    id,
  )

async function jobsWith(words: string): Promise<number> {
  const count = `select count(*)::int n from pgboss.job where data::text like '%' || $1 || '%'`
  return (await one<{ n: number }>(count, words)).n
}

t.test('waiting jobs and dead letters of the vault go with their words, no others', async t => {
  const [key, stranger] = [await buildKey(backend), await buildKey(backend)]
  const waiting = await ingest(key, 'zebra one')
  const dead = await ingest(key, 'zebra two')
  await backend.postgres.query(
    `with moved as (delete from pgboss.job where id = $1 returning data)
   insert into pgboss.job (name, data) select 'ingest.dead', data from moved`,
    [dead],
  )
  await setOperation(backend, dead, { state: 'failed' })
  await ingest(stranger, 'zebra three')
  const job = await cleared(key)
  const later = await ingest(key, 'zebra four')
  t.equal(await jobsWith('zebra'), 4)

  await finishClearing(backend, job, signal)
  t.equal(await jobsWith('zebra'), 2)
  t.equal(await jobsWith('zebra four'), 1, 'what was accepted afterwards stays')
  t.match(await operation(job.operation), { state: 'done', outcome: { deleted: 0 } })
  t.match(await operation(waiting), { state: 'cancelled' })
  t.match(await operation(dead), { state: 'cancelled' })
  t.match(await operation(later), { state: 'accepted' })
  const { vault } = await readVaultScope(backend, key)
  t.equal((await vaultRow(backend, vault)).pending, 2)
})

t.test('of a session, its own jobs alone', async t => {
  const key = await buildKey(backend)
  await ingest(key, 'giraffe core')
  await ingest(key, 'giraffe trip', 'trip')
  await ingest(key, 'giraffe garden', 'garden')
  const job = await cleared(key, 'trip')
  await ingest(key, 'giraffe trip again', 'trip')
  await finishClearing(backend, job, signal)
  t.equal(await jobsWith('giraffe'), 3)
  t.equal(await jobsWith('giraffe trip'), 1)
})

t.test('of a session, when the vault was cleared since: what came after both stays', async t => {
  const key = await buildKey(backend)
  await ingest(key, 'bison before', 'trip')
  const first = await cleared(key, 'trip')
  const [swept] = await dueNow(first.vault)
  const second = await cleared(key)

  const scope = await readVaultScope(backend, key)
  await insertStoredMemories(backend, scope, [{ text: 'bison stored', at: 1, session: 'trip' }])
  const waiting = await ingest(key, 'bison waiting', 'trip')
  const upload = await createTestClient(api.base, key).send('POST', '/v1/memory/upload', {
    headers: {
      'content-type': 'application/x-ndjson',
      prefer: 'respond-async',
      'x-session-id': 'trip',
    },
    body: '{"content":"bison in a file"}\n',
  })
  t.equal(upload.status, 202)
  const open = mintId()
  await backend.exchanges.open({
    operation: open,
    owner: await resolveCaller(backend, key),
    session: 'trip',
    embeddings: 'local',
    model: 'openai/gpt-5',
    userMessages: [{ role: 'user', content: 'bison in a call' }],
  })
  await backend.postgres.query(
    `insert into call_traces (id, vault, epoch, session, session_epoch, expires_at, trace)
     values ($1, $2, $3, 'trip', 0, now() + interval '1 day', '{}')`,
    [open, scope.vault, scope.epoch],
  )

  await sweepCleared(backend, swept!)
  for (const job of [first, second]) await finishClearing(backend, job, signal)
  t.match(await operation(first.operation), { state: 'done', outcome: { deleted: 0 } })
  const texts = (await readDocuments(backend, key)).map(({ text }) => text)
  t.match(texts, ['bison stored'])
  t.equal(await jobsWith('bison before'), 0)
  t.equal(await jobsWith('bison waiting'), 1)
  t.match(await operation(waiting), { state: 'accepted' })
  t.match(await operation(upload.body.operation_id), { state: 'accepted' })
  t.same(
    await one(
      `select (select count(*)::int from open_exchanges where operation = $1) exchanges,
              (select count(*)::int from call_traces where id = $1) traces,
              (select count(*)::int from long_operations where operation = $2) files`,
      open,
      upload.body.operation_id,
    ),
    { exchanges: 1, traces: 1, files: 1 },
  )
})

/** The clearings of a vault as a sweep reads them. */
async function dueNow(vault: string): Promise<ClearedRange[]> {
  await makeErasuresDue(backend, [vault])
  return dueErasures(backend.postgres.query, 100)
}

t.test('waits for work in flight, and removes what it wrote', async t => {
  const key = await buildKey(backend)
  const { vault, epoch } = await readVaultScope(backend, key)
  const active = await ingest(key, 'okapi in flight')
  await startJob(backend, active)
  const job = await cleared(key)
  const finishing = finishClearing(backend, job, signal)
  const isRunning = async () => (await operation(job.operation)).state === 'running'
  await waitUntil('it has begun', isRunning)
  await delay(300)
  t.match(await operation(job.operation), { state: 'running' }, 'not while a worker holds words')
  await insertStoredMemories(backend, { vault, epoch, revision: 0 }, [
    { text: 'okapi in flight', at: 1 },
  ])
  await backend.postgres.query(`update pgboss.job set state = 'completed' where id = $1`, [active])
  await finishing
  t.match(await operation(job.operation), { state: 'done', outcome: { deleted: 0 } })
  t.same(await readDocuments(backend, key), [])
  t.equal(await jobsWith('okapi'), 0)
})

t.test('killed midway: the next run removes the rest and counts all', async t => {
  const key = await buildKey(backend)
  const rows = Array.from({ length: 2_500 }, (_, n) => ({ text: `note ${n}`, at: n, tokens: 2 }))
  await insertStoredMemories(backend, await readVaultScope(backend, key), rows, { vectors: false })
  const job = await cleared(key)
  for (const left of [1_500, 500]) {
    await t.rejects(finishClearing(dyingAfterOneBatch(), job, signal), { message: 'killed' })
    t.equal((await readDocuments(backend, key)).length, left)
  }
  await finishClearing(backend, job, signal)
  t.match(await operation(job.operation), { state: 'done', outcome: { deleted: 2_500 } })
  t.same(await readDocuments(backend, key), [])
})

/** A store whose second deletion kills. */
function dyingAfterOneBatch(): Backend {
  let calls = 0
  const memories = new Proxy(backend.mongo.memories, {
    get(target, name) {
      const own = Reflect.get(target, name) as unknown
      if (typeof own !== 'function') return own
      if (name === 'deleteMany' && ++calls === 2) return () => Promise.reject(new Error('killed'))
      return own.bind(target) as unknown
    },
  })
  return { ...backend, mongo: { ...backend.mongo, memories } }
}

t.test('a run after its end removes nothing and answers the same', async t => {
  const key = await buildKey(backend)
  await insertStoredMemories(backend, await readVaultScope(backend, key), [{ text: 'one', at: 1 }])
  const job = await cleared(key)
  await finishClearing(backend, job, signal)
  const first = await operation(job.operation)
  await insertStoredMemories(backend, await readVaultScope(backend, key), [{ text: 'two', at: 2 }])
  await finishClearing(backend, job, signal)
  t.same(await operation(job.operation), first)
  t.equal((await readDocuments(backend, key)).length, 1)
})

t.test('two clearings of a vault each count what they made invisible', async t => {
  const key = await buildKey(backend)
  await insertStoredMemories(backend, await readVaultScope(backend, key), [{ text: 'one', at: 1 }])
  const first = await cleared(key)
  await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'two', at: 2 },
    { text: 'three', at: 3 },
  ])
  const second = await cleared(key)
  await Promise.all([first, second].map(job => finishClearing(backend, job, signal)))
  t.match(await operation(first.operation), { outcome: { deleted: 1 } })
  t.match(await operation(second.operation), { outcome: { deleted: 2 } })
  t.same(await readDocuments(backend, key), [])
})

t.test('lent batches and files on their way go too', async t => {
  const key = await buildKey(backend)
  await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'to be consolidated', at: 1 },
  ])
  const client = createTestClient(api.base, key)
  await client.post('/v1/memory/consolidate/checkout', { tier: 1 })
  const upload = await client.send('POST', '/v1/memory/upload', {
    headers: { 'content-type': 'application/x-ndjson', prefer: 'respond-async' },
    body: '{"content":"tapir on its way"}\n',
  })
  t.equal(upload.status, 202)
  const words = () =>
    one(
      `select (select count(*)::int from operation_steps where input::text like '%tapir%') chunks,
              (select count(*)::int from leases) leases`,
    )
  t.same(await words(), { chunks: 1, leases: 1 })
  const job = await cleared(key)
  await finishClearing(backend, job, signal)
  t.same(await words(), { chunks: 0, leases: 0 })
  t.match(await operation(upload.body.operation_id), { state: 'cancelled' })
})

t.test('after the last try the operation has failed and the sweeps take over', async t => {
  const key = await buildKey(backend)
  const job = await cleared(key)
  await abandonClearing(backend, job)
  t.match(await operation(job.operation), { state: 'failed' })
  const isDue = `select due_at < now() + interval '2 minutes' as due from erasures where vault = $1`
  t.match(await one(isDue, job.vault), { due: true })
})

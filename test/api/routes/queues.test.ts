import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { sampleQueues } from '#shared/storage/queue/queue-samples.postgres.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { cutUpdates } from '#test/support/checks/alter.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { failJob, giveUpJob, startJob } from '#test/support/checks/alter-jobs.ts'
import { jobData, jobIdsOf, jobRow, operationState } from '#test/support/checks/observe-jobs.ts'

// No worker runs: jobs stay where they are put.
const backend = await createTestBackend(t)
const { query } = backend.postgres
const { base } = await startTestApi(t, backend)
const operator = createTestClient(
  base,
  (await buildAdmin(backend, operatorEmail(backend.config))).key,
)
const userKey = await buildKey(backend)
const queues = '/v1/operator/queues'
const jobsOf = (queue: string): string => `${queues}/${queue}/jobs`
const act = async (action: string, job_ids?: string[], queue = 'ingest') =>
  (await operator.post(`${jobsOf(queue)}/${action}`, job_ids ? { job_ids } : {})).body
const done = { jobs: 1, refused: [], has_more: false }

const word = 'Saxifrage'
const ingest = async (key = userKey): Promise<string> => {
  const content = `${word} grows on the <b>north</b> wall`
  const messages = [{ role: 'user', content, name: word }]
  const exchange = { messages, session_id: word, metadata: { topic: word, [word]: 42_017 } }
  const answer = await createTestClient(base, key).post('/v1/memory/ingest', exchange)
  return answer.body.operation_id as string
}
const rowOf = (id: string) => jobRow(backend, id)
const stateOfOperation = (id: string) => operationState(backend, id)
const die = (job: string, queue?: JobName) => giveUpJob(backend, job, queue)

t.test('a queue lists its jobs, and a job is shown without the words of users', async t => {
  const first = await ingest()
  const id = await ingest()
  const { items } = (await operator.get(queues)).body
  const queue = items.find(({ name }: { name: string }) => name === 'ingest')
  t.match(queue, { waiting: 2, held: 0, waits_for: null, retrying: 0, running: 0, dead: 0 })
  t.match([queue.oldest_seconds, queue.longest_seconds], [Number, null])
  const page = (await operator.get(`${jobsOf('ingest')}?limit=1`)).body
  t.match(page.items, [{ job_id: id, queue: 'ingest', state: 'waiting', tries: 0, error: '' }])
  const rest = await operator.get(`${jobsOf('ingest')}?limit=1&cursor=${page.next_cursor}`)
  t.match(rest.body, { items: [{ job_id: first }], has_more: false, next_cursor: null })
  const { status, body } = await operator.get(`${jobsOf('ingest')}/${id}`)
  t.match({ status, body }, { status: 200, body: { job_id: id, priority: Number } })
  const text = JSON.stringify([body, page])
  t.match(text, /characters\)/, 'a text is shown by its length')
  for (const hidden of [word, '42017', userKey.slice(3)]) t.notMatch(text, hidden)
  for (const odd of [`ingest/jobs/${crypto.randomUUID()}`, 'ingest/jobs/x', 'unknown/jobs'])
    t.equal((await operator.get(`${queues}/${odd}`)).status, 404, odd)
  t.same(await act('cancel', [id, first]), { ...done, jobs: 2 })
})

t.test('run makes a waiting job due and puts a dead one back', async t => {
  const id = await ingest()
  await query(
    `update pgboss.job set state = 'retry', start_after = now() + interval '1 hour'
               where id = $1`,
    [id],
  )
  t.same(await act('run', [id]), done)
  t.match(await rowOf(id), { state: 'retry', due: true })

  const letter = await die(id)
  t.match((await operator.get(jobsOf('ingest.dead'))).body.items, [
    { job_id: letter, state: 'dead', error: 'the model was away', tries: 10 },
  ])
  t.same(await act('run', [letter], 'ingest.dead'), done)
  t.equal(await rowOf(letter), undefined)
  const [again] = await jobIdsOf(backend, 'ingest', [id])
  t.match(await rowOf(again!), { state: 'created' }, 'it waits in its queue again')

  const failed = await ingest()
  await failJob(backend, failed)
  t.match((await act('cancel', [failed])).refused, [{ error: /has ended/ }])
  t.same(await act('run', [failed]), done)
  t.match(await rowOf(failed), { state: 'retry' })
})

t.test('cancel removes the jobs of an operation and cancels it', async t => {
  const [id, running, gone] = [await ingest(), await ingest(), crypto.randomUUID()]
  await startJob(backend, running)
  t.match(await act('cancel', [running, gone, id, id]), {
    jobs: 1,
    refused: [
      { job_id: running, error: /runs/ },
      { job_id: gone, error: /no such job/ },
    ],
  })
  t.equal(await rowOf(id), undefined)
  t.equal(await stateOfOperation(id), 'cancelled')
  t.equal(await stateOfOperation(running), 'accepted')
  t.match((await act('run', [running])).refused, [{ error: /runs/ }])
})

t.test('delete removes what has ended, and no job whose operation waits for it', async t => {
  const id = await ingest()
  t.match(await act('delete', [id]), { jobs: 0, refused: [{ job_id: id, error: /Cancel it/ }] })
  t.ok(await rowOf(id))
  const letter = await die(id)
  t.same(await act('delete', [letter], 'ingest.dead'), done)
  t.equal(await rowOf(letter), undefined)
  t.equal(await stateOfOperation(id), 'cancelled')
})

t.test('all dead jobs of a queue at once, and no others', async t => {
  const ids = [await ingest(), await ingest(), await ingest()]
  for (const id of ids) await die(id)
  t.equal((await operator.post(`${jobsOf('ingest')}/run`, {})).status, 400)
  t.same(await act('run', undefined, 'ingest.dead'), { ...done, jobs: 3 })
  t.same((await operator.get(jobsOf('ingest.dead'))).body.items, [])
  for (const id of await jobIdsOf(backend, 'ingest', ids)) await die(id)
  t.same(await act('delete', undefined, 'ingest.dead'), { ...done, jobs: 3 })
  for (const id of ids) t.equal(await stateOfOperation(id), 'cancelled')
})

t.test('delete of a dead letter removes what its tries have stored', async t => {
  const key = await buildKey(backend)
  const id = await ingest(key)
  const job = await jobData<IngestJob>(backend, id)
  const { restore } = await cutUpdates(backend, 'operations')
  await t.rejects(storeAccepted(backend, [job], { again: false }), { message: 'cut' })
  await restore()
  t.equal((await readDocuments(backend, key)).length, 1)
  const letter = await die(id)
  await backend.postgres.transaction(tx => failOperations(tx, backend.queue, [id]))
  t.same(await act('delete', [letter], 'ingest.dead'), done)
  t.equal(await rowOf(letter), undefined)
  t.same(await readDocuments(backend, key), [])
  t.equal(await stateOfOperation(id), 'cancelled')
})

t.test('delete of a dead letter that finishes what was acknowledged removes it alone', async t => {
  const client = createTestClient(base, await buildKey(backend))
  const respondAsync = { prefer: 'respond-async' }
  const { body } = await client.send('DELETE', '/v1/memory', { headers: respondAsync })
  const [job] = await jobIdsOf(backend, 'clear', [body.operation_id])
  const letter = await die(job!, 'clear')
  t.match((await act('cancel', [letter], 'clear.dead')).refused, [{ error: /acknowledged/ }])
  t.same(await act('delete', [letter], 'clear.dead'), done)
  t.equal(await rowOf(letter), undefined)
  t.equal(await stateOfOperation(body.operation_id), 'running')
})

t.test('send puts a job into a queue', async t => {
  const send = (queue: string, payload: unknown) => operator.post(jobsOf(queue), { payload })
  t.match(await send('ingest', { a: 1 }), {
    status: 400,
    body: { error: /payload lacks operation, vault/, hint: /ingest/ },
  })
  const { status, body } = await send('webhook', { delivery: 'x', odd: '\u0000' })
  t.equal(status, 200)
  t.match(await rowOf(body.job_id), { name: 'webhook', state: 'created' })
  t.equal((await send('webhook', [])).status, 400)
  for (const name of ['x', 'webhook.dead']) t.equal((await send(name, {})).status, 404, name)
})

t.test('the depth of the queues is kept every five minutes, for two days', async t => {
  const hour = 3_600_000
  const kept = async (at: number) => sampleQueues(query, at)
  const slot = Math.floor((Date.now() - 1.5 * hour) / 300_000) * 300_000
  t.ok((await kept(slot - 49 * hour)) > 10)
  await ingest()
  const { items } = (await operator.get(queues)).body
  t.equal(await kept(slot), items.length)
  t.equal(await kept(slot + 299_999), 0, 'once')
  t.equal(await kept(slot + 300_000), items.length)
  const { rows } = await query('select distinct at from queue_samples')
  t.equal(rows.length, 2, 'old ones are dropped')
  const history = async (hours: number | string) =>
    (await operator.get(`${queues}/history?hours=${hours}`)).body
  const { at, items: series } = await history(2)
  t.same(at, [new Date(slot).toISOString(), new Date(slot + 300_000).toISOString()])
  t.equal(series.length, items.length)
  const { name, waiting, retrying, running, dead } = items[0]
  const twice = (value: number) => [value, value]
  t.match(series[0], {
    name,
    waiting: twice(waiting + retrying),
    running: twice(running),
    dead: twice(dead),
    oldest_seconds: [Number, Number],
  })
  t.same((await history(1)).at, [])
  t.equal((await operator.get(`${queues}/history?hours=49`)).status, 400)
})

t.test('403 for others; the former pages lead to the console', async t => {
  const { key } = await buildAdmin(backend)
  const other = createTestClient(base, key)
  for (const path of [queues, `${queues}/history`, jobsOf('ingest')])
    t.equal((await other.get(path)).status, 403, path)
  t.equal((await other.post(`${jobsOf('ingest.dead')}/delete`, {})).status, 403)
  for (const path of ['/admin/queues', '/admin/queues/ingest/jobs/x']) {
    const { status, headers } = await fetch(new URL(path, base), { redirect: 'manual' })
    t.match([status, headers.get('location')], [302, '/console#/service/queues'])
  }
})

import t from 'tap'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { billedEvents } from '#test/support/checks/observe.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: [] })
const said = (content: string) => ({ messages: [{ role: 'user', content }] })
const asynchronous = { prefer: 'respond-async' }

const linesOf = (count: number): string =>
  Array.from({ length: count }, (_, n) => `{"content":"line number ${n}"}`).join('\n')

/** Accepts a file of three chunks; no worker runs. */
async function acceptFile(client: ReturnType<typeof createTestClient>) {
  const accepted = await client.send('POST', '/v1/memory/upload', {
    headers: { 'content-type': 'application/jsonl', ...asynchronous },
    body: linesOf(450),
  })
  const id: string = accepted.body.operation_id
  const jobs = await jobsOf<StepJob>(backend, 'upload')
  const chunks = jobs.map(({ data }) => data).filter(({ operation }) => operation === id)
  return { accepted, id, chunks: chunks.toSorted((a, b) => a.n - b.n) }
}

const isMarked = async (operation: string): Promise<boolean> => {
  const { rows } = await backend.postgres.query<{ marked: boolean }>(
    'select cancelled_at is not null as marked from long_operations where operation = $1',
    [operation],
  )
  return rows[0]?.marked ?? false
}

t.test('202: Location names the operation, Preference-Applied that the wish was heard', async t => {
  const client = await newClient()
  const { accepted, id } = await acceptFile(client)
  t.equal(accepted.status, 202)
  t.equal(accepted.headers.get('location'), `/v1/operations/${id}`)
  t.equal(accepted.headers.get('preference-applied'), 'respond-async')
  t.equal((await client.get(accepted.headers.get('location')!)).body.operation_id, id)

  const key = { 'idempotency-key': 'once' }
  for (let again = 0; again < 2; again++) {
    const told = await client.post('/v1/memory/ingest', said('x'), { ...key, ...asynchronous })
    t.equal(told.status, 202)
    t.equal(told.headers.get('location'), `/v1/operations/${told.body.operation_id}`)
    t.equal(told.headers.get('preference-applied'), null, 'an endpoint without that preference')
  }
  t.equal((await client.send('DELETE', `/v1/operations/${id}`)).status, 200)
})

t.test('409: a request that waited for a cancelled upload', async t => {
  const client = await newClient()
  const { id } = await acceptFile(client)
  await client.send('DELETE', `/v1/operations/${id}`)
  const waiting = await client.get(`/v1/operations/${id}`)
  t.match(waiting.body, { state: 'cancelled' })
})

t.test(
  '200: cancelling a running upload stops it at its next chunk; what is stored stays',
  async t => {
    const { key, ...client } = await newClient()
    const { id, chunks } = await acceptFile(client)
    t.equal(chunks.length, 3)
    await storeChunk(backend, chunks[0]!)
    t.match((await client.get(`/v1/operations/${id}`)).body, {
      state: 'running',
      progress: { done: 200, total: 450 },
    })
    const cancelling = client.send('DELETE', `/v1/operations/${id}`)
    await waitUntil('the file is marked', () => isMarked(id))
    await startJobWorkers(backend, 'upload')
    const { status, body } = await cancelling
    t.equal(status, 200)
    t.match(body, {
      state: 'cancelled',
      progress: { done: 200, total: 450 },
      finished_at: String,
      outcome: {
        status: 200,
        body: {
          stats: { inputItems: 200, stored: 200 },
          message: /^cancelled, 200 memories stored/,
        },
      },
    })
    t.match((await client.get('/v1/memory/stats')).body, { memories: 200 })
    t.match(await client.send('DELETE', `/v1/operations/${id}`), {
      status: 200,
      body: { state: 'cancelled' },
    })
    const bills = (await billedEvents(backend, key)).filter(bill => bill.id === id)
    t.equal(bills.length, 1, 'what was stored is billed')
    const again = await client.send('POST', '/v1/memory/upload', {
      headers: { 'content-type': 'application/jsonl' },
      body: linesOf(450),
    })
    t.match(again.body, { status: 'complete', stats: { stored: 250, skipped: 200 } })
    const done = await client.send('DELETE', `/v1/operations/${again.body.operation_id}`)
    t.equal(done.status, 409, 'what is done cannot be cancelled')
  },
)

t.test('200: a finished exchange has an outcome', async t => {
  const client = await newClient()
  await startJobWorkers(backend, 'ingest')
  const long = 'The boiler was serviced in March by Mr Novak of the gas works. '.repeat(120)
  const told = await client.post('/v1/memory/ingest?wait=true', said(long))
  const { body } = await client.get(`/v1/operations/${told.body.operation_id}`)
  const { memories } = (await client.get('/v1/memory/stats')).body
  t.ok(memories > 1)
  t.match(body, {
    state: 'done',
    outcome: {
      status: 200,
      body: {
        accepted: true,
        queued: false,
        operation_id: told.body.operation_id,
        stored: memories,
        message: `Stored ${memories} memories`,
      },
    },
  })
})

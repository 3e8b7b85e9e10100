import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { buildAdmin } from '#test/support/admin.ts'
import { cutUpdates } from '#test/support/alter.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { readDocuments } from '#test/support/insert-memories.ts'

// No worker runs: jobs stay where they are put.
const backend = await createTestBackend(t)
const { query } = backend.postgres
const { base } = await startTestApi(t, backend)
const { key } = await buildAdmin(backend, operatorEmail(backend.config))
const authorization = `Basic ${Buffer.from(`anyone:${key}`).toString('base64')}`
const userKey = await buildKey(backend)

const read = async (
  path: string,
): Promise<{ status: number; text: string; csp: string | null }> => {
  const response = await fetch(new URL(path, base), { headers: { authorization } })
  const csp = response.headers.get('content-security-policy')
  return { status: response.status, text: await response.text(), csp }
}
const submit = async (
  path: string,
  form: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<{ status: number; location: string; text: string }> => {
  const response = await fetch(new URL(path, base), {
    method: 'POST',
    headers: { authorization, ...headers },
    body: new URLSearchParams(form),
    redirect: 'manual',
  })
  const location = response.headers.get('location') ?? ''
  return { status: response.status, location, text: await response.text() }
}

const word = 'Saxifrage'
const ingest = async (key = userKey): Promise<string> => {
  const content = `${word} grows on the <b>north</b> wall`
  const messages = [{ role: 'user', content, name: word }]
  const exchange = { messages, session_id: word, metadata: { topic: word, [word]: 42_017 } }
  const answer = await createTestClient(base, key).post('/v1/memory/ingest', exchange)
  return answer.body.operation_id as string
}
const jobPath = (id: string, queue = 'ingest') => `/admin/queues/${queue}/jobs/${id}`
const rowOf = async (id: string) =>
  (
    await query<{ name: string; state: string; due: boolean }>(
      'select name, state, start_after <= now() as due from pgboss.job where id = $1',
      [id],
    )
  ).rows[0]
const stateOfOperation = async (id: string) =>
  (await query<{ state: string }>('select state from operations where id = $1', [id])).rows[0]!
    .state

/** A job whose tries are over, as pg-boss leaves it. @returns the id of its dead letter. */
async function die(job: string, queue = 'ingest'): Promise<string> {
  const { rows } = await query<{ id: string }>(
    `with dying as (delete from pgboss.job where id = $1 and name = $2 returning *)
     insert into pgboss.job (id, name, data, state, keep_until, retry_limit,
                             source_name, source_id, source_retry_count, source_output)
     select gen_random_uuid(), name || '.dead', data, 'created', now() + interval '1 year', 10,
            name, id, 10, '{"message": "the model was away"}'
     from dying returning id`,
    [job, queue],
  )
  return rows[0]!.id
}

t.test('a queue lists its jobs, and a job has a page without the words of users', async t => {
  const id = await ingest()
  t.match((await read('/admin/queues')).text, /<a href="\/admin\/queues\/ingest">ingest<\/a>/)
  t.match((await read('/admin/queues/ingest')).text, jobPath(id))
  const { status, text, csp } = await read(jobPath(id))
  t.equal(status, 200)
  t.match(text, /State<\/th>\s*<td>created\s*<\/td>/)
  t.match(text, /characters\)/, 'a text is shown by its length')
  t.notMatch(text, word)
  t.notMatch(text, '42017')
  t.notMatch(text, userKey.slice(3))
  t.match(csp, /default-src 'none'.*frame-ancestors 'none'/)
  t.equal((await read(jobPath(crypto.randomUUID()))).status, 404)
  t.equal((await read(jobPath('x'))).status, 404)
  t.equal((await read('/admin/queues/unknown')).status, 404)
})

t.test('retry makes a waiting job due and puts a dead letter back', async t => {
  const id = await ingest()
  await query(
    `update pgboss.job set state = 'retry', start_after = now() + interval '1 hour'
               where id = $1`,
    [id],
  )
  t.match(await submit(`${jobPath(id)}/retry`), { status: 303, location: '/admin/queues/ingest' })
  t.match(await rowOf(id), { state: 'retry', due: true })

  const letter = await die(id)
  t.match((await read(jobPath(letter, 'ingest.dead'))).text, /the model was away/)
  t.equal((await submit(`${jobPath(letter, 'ingest.dead')}/retry`)).status, 303)
  t.equal(await rowOf(letter), undefined)
  const { rows } = await query(
    `select from pgboss.job where name = 'ingest' and data->>'operation' = $1 and state < 'active'`,
    [id],
  )
  t.equal(rows.length, 1, 'it waits in its queue again')

  const failed = await ingest()
  await query(`update pgboss.job set state = 'failed', completed_on = now() where id = $1`, [
    failed,
  ])
  t.equal((await submit(`${jobPath(failed)}/retry`)).status, 303)
  t.match(await rowOf(failed), { state: 'retry' })
})

t.test('cancel removes the jobs of an operation and cancels it', async t => {
  const id = await ingest()
  t.equal((await submit(`${jobPath(id)}/cancel`)).status, 303)
  t.equal(await rowOf(id), undefined)
  t.equal(await stateOfOperation(id), 'cancelled')

  const running = await ingest()
  await query(`update pgboss.job set state = 'active', started_on = now() where id = $1`, [running])
  t.match(await submit(`${jobPath(running)}/cancel`), { status: 409 })
  t.equal(await stateOfOperation(running), 'accepted')
})

t.test('delete removes what has ended, and no job whose operation waits for it', async t => {
  const id = await ingest()
  t.match(await submit(`${jobPath(id)}/delete`), { status: 409, text: /Cancel it/ })
  t.ok(await rowOf(id))
  const letter = await die(id)
  t.equal((await submit(`${jobPath(letter, 'ingest.dead')}/delete`)).status, 303)
  t.equal(await rowOf(letter), undefined)
  t.equal(await stateOfOperation(id), 'cancelled')
})

t.test('delete of a dead letter removes what its tries have stored', async t => {
  const key = await buildKey(backend)
  const id = await ingest(key)
  const { rows } = await query<{ data: IngestJob }>('select data from pgboss.job where id = $1', [
    id,
  ])
  const { restore } = await cutUpdates(backend, 'operations')
  await t.rejects(storeAccepted(backend, [rows[0]!.data], { again: false }), { message: 'cut' })
  await restore()
  t.equal((await readDocuments(backend, key)).length, 1)
  const letter = await die(id)
  await backend.postgres.transaction(tx => failOperations(tx, backend.queue, [id]))
  t.equal((await submit(`${jobPath(letter, 'ingest.dead')}/delete`)).status, 303)
  t.equal(await rowOf(letter), undefined)
  t.same(await readDocuments(backend, key), [])
  t.equal(await stateOfOperation(id), 'cancelled')
})

t.test('delete of a dead letter that finishes what was acknowledged removes it alone', async t => {
  const client = createTestClient(base, await buildKey(backend))
  const respondAsync = { prefer: 'respond-async' }
  const { body } = await client.send('DELETE', '/v1/memory', { headers: respondAsync })
  const { rows } = await query<{ id: string }>(
    `select id from pgboss.job where name = 'clear' and data->>'operation' = $1`,
    [body.operation_id],
  )
  const letter = await die(rows[0]!.id, 'clear')
  t.equal((await submit(`${jobPath(letter, 'clear.dead')}/delete`)).status, 303)
  t.equal(await rowOf(letter), undefined)
  t.equal(await stateOfOperation(body.operation_id), 'running')
})

t.test('send puts a job into a queue', async t => {
  t.match((await read('/admin/queues/send')).text, /<option>sweep<\/option>/)
  const sent = await submit('/admin/queues/send', { queue: 'webhook', data: '{"delivery":"x"}' })
  t.equal(sent.status, 303)
  const id = /Sent%20([0-9a-f-]{36})/.exec(sent.location)?.[1]
  t.match(await rowOf(id!), { name: 'webhook', state: 'created' })
  t.equal((await submit('/admin/queues/send', { queue: 'webhook', data: '[]' })).status, 400)
  t.equal((await submit('/admin/queues/send', { queue: 'x', data: '{}' })).status, 400)
})

t.test('what cannot be is refused, or shown as nothing', async t => {
  const id = await ingest()
  t.equal((await read('/admin/queues/ingest?page=1e20')).status, 200)
  t.equal((await read('/admin/queues/ingest?page=-1')).status, 200)
  for (const odd of ['%00', 'x']) t.equal((await read(jobPath(odd))).status, 404, odd)
  for (const odd of ['__proto__', 'valueOf', 'constructor'])
    t.equal((await submit(`${jobPath(id)}/${odd}`)).status, 404, odd)
  const nul = await submit('/admin/queues/send', { queue: 'webhook', data: '{"a":"\\u0000"}' })
  t.equal(nul.status, 303)
})

t.test(
  'a form of another origin is refused, and so is a request without the credential',
  async t => {
    const id = await ingest()
    for (const headers of [
      { origin: 'https://elsewhere.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ])
      t.equal((await submit(`${jobPath(id)}/cancel`, {}, headers)).status, 400)
    t.equal(
      (await submit(`${jobPath(id)}/cancel`, {}, { authorization: 'Basic eA==' })).status,
      401,
    )
    t.equal(await stateOfOperation(id), 'accepted')
    t.equal((await submit(`${jobPath(id)}/cancel`, {}, { origin: base })).status, 303)
  },
)

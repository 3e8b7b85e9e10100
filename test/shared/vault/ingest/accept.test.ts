import t from 'tap'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { finishClearing } from '#shared/vault/delete/clear-vault.ts'
import { mintId } from '#shared/core/ids.ts'
import { cancelOperation } from '#shared/vault/delete/cancel.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import { jobData } from '#test/support/checks/observe-jobs.ts'
import type { IngestJob, ClearJob } from '#shared/domain/job-payloads.ts'

// Nobody takes jobs here: each run of one is made by hand.
const backend = await createTestBackend(t)
const api = await startTestApi(t, backend)
const { query } = backend.postgres

/** A vault, and an exchange told to it as often as one likes under the same operation. */
async function teller() {
  const key = await buildKey(backend)
  const caller = await resolveCaller(backend, key)
  const operation = mintId()
  const tell = async () =>
    acceptExchange(backend, await resolveCaller(backend, key), {
      operation,
      session: null,
      messages: [{ role: 'user', content: 'the ferry leaves at nine' }],
      model: null,
      embeddings: undefined,
      awaited: false,
    })
  return { key, caller, operation, tell, client: createTestClient(api.base, key) }
}

async function clear(client: TestClient): Promise<void> {
  const headers = { prefer: 'respond-async' }
  const { body } = await client.send('DELETE', '/v1/memory', { headers })
  const job = await jobData<ClearJob>(backend, body.operation_id)
  await finishClearing(backend, job, new AbortController().signal)
}

const jobsOf = async (operation: string): Promise<IngestJob[]> =>
  (
    await query<{ data: IngestJob }>(
      `select data from pgboss.job where name = 'ingest' and data->>'operation' = $1`,
      [operation],
    )
  ).rows.map(({ data }) => data)

const standing = async (operation: string) =>
  (
    await query(
      `select o.state, v.pending, a.balance::int,
              (select sum(memory_tokens)::int from usage_events u where u.vault = v.id) as billed
       from operations o join vaults v on v.id = o.vault join accounts a on a.id = o.account
       where o.id = $1`,
      [operation],
    )
  ).rows[0]

t.test('told again under one operation, work is promised, counted and billed once', async t => {
  const { operation, tell } = await teller()
  await tell()
  const first = await standing(operation)
  t.match(first, { state: 'accepted', pending: 1, billed: Number })
  await Promise.all(Array.from({ length: 20 }, tell))
  t.same(await standing(operation), first)
  const jobs = await jobsOf(operation)
  t.equal(jobs.length, 1)
  await storeAccepted(backend, jobs, { again: false })
  t.match(await standing(operation), { state: 'done', pending: 0 })
})

t.test('sent again after its vault was cleared, it brings nothing back', async t => {
  const { key, operation, tell, client } = await teller()
  await tell()
  await storeAccepted(backend, await jobsOf(operation), { again: false })
  await query('delete from pgboss.job where id = $1', [operation])
  await clear(client)

  await tell()
  t.same(await jobsOf(operation), [], 'no job')
  t.same(await readDocuments(backend, key), [])
  t.match(await standing(operation), { state: 'done', pending: 0 })
})

t.test('cancelled, its bill goes back to the balance; sent again it stays cancelled', async t => {
  const { caller, operation, tell } = await teller()
  await query('update accounts set balance = 1000 where id = $1', [caller.account])
  await tell()
  const { balance, billed } = (await standing(operation))!
  t.ok(billed > 0)
  t.equal(balance, 1_000 - billed)
  t.ok(await cancelOperation(backend, caller.account, operation))
  const cancelled = { state: 'cancelled', pending: 0, balance: 1_000, billed: null }
  t.same(await standing(operation), cancelled)
  await tell()
  t.same(await standing(operation), cancelled)
  t.same(await jobsOf(operation), [])
})

t.test('what a clearing makes void stays billed, as if it had been stored before', async t => {
  const { operation, tell, client } = await teller()
  await tell()
  const { billed } = (await standing(operation))!
  await clear(client)
  t.match(await standing(operation), { state: 'cancelled', pending: 0, billed })
})

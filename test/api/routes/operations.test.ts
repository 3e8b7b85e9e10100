import t from 'tap'
import {
  rollUpAccountUsage,
  serviceUsageByDay,
  rollUpKeyUsage,
} from '#shared/billing/usage-sums.postgres.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { holdRow, untilWaiting } from '#test/support/checks/held-rows.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { ageBill, makeJobsDue, rewindUsageRollUp } from '#test/support/checks/alter-jobs.ts'
import { billedEvents, vaultRow } from '#test/support/checks/observe.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient('owner@example.com')
const stranger = await newClient()

const ingest = async (path = '/v1/memory/ingest'): Promise<string> =>
  (await api.post(path, { messages: [{ role: 'user', content: 'hello there' }] })).body.operation_id

const pending = async (): Promise<number> => {
  const { scope } = await resolveCaller(backend, key)
  return (await vaultRow(backend, scope.vault)).pending
}

t.test('200: an operation tells its state, key, session and progress', async t => {
  const id = await ingest()
  t.match((await api.get(`/v1/operations/${id}`)).body, {
    operation_id: id,
    kind: 'ingest',
    state: 'accepted',
    key: `${key.slice(0, 6)}…${key.slice(-4)}`,
    session_id: null,
    progress: { done: 0, total: 1 },
    finished_at: null,
    outcome: null,
  })
})

t.test('200: cancelling what has not begun takes job and bill back; again the same', async t => {
  const before = await pending()
  const id = await ingest()
  const cancelled = await api.send('DELETE', `/v1/operations/${id}`)
  t.match(cancelled, { status: 200, body: { state: 'cancelled', finished_at: String } })
  t.equal((await api.send('DELETE', `/v1/operations/${id}`)).status, 200)
  t.equal(await pending(), before)
  t.notOk((await jobsOf(backend, 'ingest')).some(job => job.id === id))
  t.notOk((await billedEvents(backend, key)).some(bill => bill.id === id))
})

t.test('200: cancelling takes the bill out of days that are rolled up too', async t => {
  await passMidnight()
  const { query } = backend.postgres
  for (const table of ['usage_rolled', 'usage_accounts_rolled'] as const) {
    await rewindUsageRollUp(backend, table, 5)
  }
  const kept = await ingest()
  await ageBill(backend, kept, '3 days')
  const usage = async () => ({
    ofKey: (await api.get('/v1/account/usage?by_day=true')).body.by_day,
    ofService: await serviceUsageByDay(query, 6),
  })
  const before = await usage()
  const bills = ['3 days', '2 days']
  const ids = await Promise.all(bills.map(() => ingest()))
  for (const [index, age] of bills.entries()) await ageBill(backend, ids[index]!, age)
  await rollUpKeyUsage(query)
  await rollUpAccountUsage(query)
  const billed = await usage()
  t.equal(billed.ofKey.length, before.ofKey.length + 1)
  t.equal(billed.ofService.length, before.ofService.length + 1)
  for (const id of ids) t.equal((await api.send('DELETE', `/v1/operations/${id}`)).status, 200)
  t.same(await usage(), before)
})

t.test('200: two cancelled at once leave nothing in a day that is rolled up', async t => {
  const { query } = backend.postgres
  await rewindUsageRollUp(backend, 'usage_accounts_rolled', 12)
  const other = await newClient('owner@example.com')
  const messages = [{ role: 'user', content: 'hello there' }]
  const { operation_id: ofOther } = (await other.post('/v1/memory/ingest', { messages })).body
  const cancels = [
    { client: api, id: await ingest() },
    { client: other, id: ofOther as string },
  ]
  for (const { id } of cancels) await ageBill(backend, id, '10 days')
  await rollUpAccountUsage(query)
  const { account } = await resolveCaller(backend, key)
  const ofDay = `select requests::int from usage_accounts
                 where account = $1 and day < (now() at time zone 'utc')::date - 8`
  t.same((await query(ofDay, [account])).rows, [{ requests: 2 }])
  const release = await holdRow(t, backend, `${ofDay} for update`, account)
  const answers = cancels.map(({ client, id }) => client.send('DELETE', `/v1/operations/${id}`))
  await untilWaiting(backend, 2)
  await release()
  for (const answer of answers) t.equal((await answer).status, 200)
  t.same((await query(ofDay, [account])).rows, [])
})

t.test('200: pages of the account, newest first, filtered', async t => {
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift(await ingest())
  const first = await api.get('/v1/operations?limit=3&state=accepted')
  t.same(
    first.body.items.map((item: { operation_id: string }) => item.operation_id),
    ids.slice(0, 3),
  )
  t.equal(first.body.has_more, true)
  const second = await api.get(
    `/v1/operations?limit=3&state=accepted&cursor=${first.body.next_cursor}`,
  )
  t.same(
    second.body.items.slice(0, 2).map((item: { operation_id: string }) => item.operation_id),
    ids.slice(3),
  )
  const other = await api.get(`/v1/operations?limit=3&cursor=${first.body.next_cursor}`)
  t.match(other, { status: 400, body: { error: /cursor/ } }, 'a cursor belongs to its filters')
  t.same((await api.get('/v1/operations?kind=upload')).body.items, [])
  t.same((await stranger.get('/v1/operations')).body.items, [])
})

t.test('409: what a worker has written and not finalized cannot be cancelled', async t => {
  const own = await createTestBackend(t)
  const ownKey = await buildKey(own)
  const client = await startTestApi(t, own, ownKey)
  let dies = true
  const memories = new Proxy(own.memories, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>
      if (name !== 'add' || !dies) return method.bind(target)
      return async (...args: unknown[]) => {
        await method.apply(target, args)
        throw new Error('killed')
      }
    },
  })
  await startJobWorkers({ ...own, memories }, 'ingest')
  const { body } = await client.post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'half stored' }],
  })
  const path = `/v1/operations/${body.operation_id}`
  await waitUntil('a try has failed', async () => {
    const [job] = await jobsOf(own, 'ingest')
    return job?.state === 'retry'
  })
  t.match(await client.send('DELETE', path), { status: 409, body: { error: /begun or ended/ } })
  dies = false
  await waitUntil('a later try ends it', async () => {
    await makeJobsDue(own, 'ingest')
    return (await client.get(path)).body.state === 'done'
  })
  t.match((await client.get('/v1/memory/stats')).body, { memories: 1 })
  const { scope } = await resolveCaller(own, ownKey)
  t.match(await vaultRow(own, scope.vault), { rawUnits: 1, pending: 0 })
  t.ok((await billedEvents(own, ownKey)).some(bill => bill.id === body.operation_id))
})

t.test('409: what has begun or ended cannot be cancelled', async t => {
  await startJobWorkers(backend)
  const id = await ingest('/v1/memory/ingest?wait=true')
  t.match(await api.send('DELETE', `/v1/operations/${id}`), {
    status: 409,
    body: { error: /begun or ended/ },
  })
  t.match((await api.get(`/v1/operations/${id}`)).body, {
    state: 'done',
    progress: { done: 1, total: 1 },
  })
})

import t from 'tap'
import { acceptDeletion, executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { mintId } from '#shared/core/ids.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import { operationState } from '#test/support/checks/observe-jobs.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { vaultRow } from '#test/support/checks/observe.ts'

const backend = await createTestBackend(t)
const api = await startTestApi(t, backend)
const { query } = backend.postgres

const ingest = async (key: string): Promise<string> =>
  (
    await createTestClient(api.base, key).post('/v1/memory/ingest', {
      messages: [{ role: 'user', content: 'hello there' }],
    })
  ).body.operation_id

const stateOf = (id: string) => operationState(backend, id)
const age = (id: string, interval: string) => ageRows(backend, 'operations', interval, { id })

t.test('what arrives late in a cleared vault is swept, and less and less often', async t => {
  const key = await buildKey(backend)
  const before = await readVaultScope(backend, key)
  await createTestClient(api.base, key).send('DELETE', '/v1/memory', {
    headers: { prefer: 'respond-async' },
  })
  await insertStoredMemories(backend, before, [{ text: 'written late', at: 1 }], { vectors: false })
  await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'written after', at: 2 },
  ])
  t.match(await sweepAll(backend), { erased: 0 }, 'not before it is erased')

  const sweptAfter = async (passed: string) => {
    await query(
      `update erasures set cleared_at = now() - $2::interval, due_at = now() where vault = $1`,
      [before.vault, passed],
    )
    const { erased } = await sweepAll(backend)
    const { rows } = await query<{ minutes: number }>(
      `select round(extract(epoch from due_at - now()) / 60)::int as minutes from erasures
       where vault = $1`,
      [before.vault],
    )
    return { erased, minutes: rows[0]?.minutes }
  }
  t.same(await sweptAfter('10 seconds'), { erased: 1, minutes: 1 })
  const texts = (await readDocuments(backend, key)).map(({ text }) => text)
  t.same(texts, ['written after'])
  t.same(await sweptAfter('4 hours'), { erased: 0, minutes: 240 })
  t.same(await sweptAfter('401 days'), { erased: 0, minutes: undefined })
})

t.test('of a session too', async t => {
  const key = await buildKey(backend)
  const scope = await readVaultScope(backend, key)
  await createTestClient(api.base, key).send('DELETE', '/v1/memory', {
    headers: { prefer: 'respond-async', 'x-session-id': 'trip' },
  })
  await insertStoredMemories(backend, scope, [
    { text: 'written late', at: 1, session: 'trip' },
    { text: 'core', at: 2 },
    { text: 'other', at: 3, session: 'other' },
  ])
  await query('update erasures set due_at = now() where vault = $1', [scope.vault])
  t.match(await sweepAll(backend), { erased: 1 })
  t.equal((await readDocuments(backend, key)).length, 2)
})

t.test('tombstones stay for 400 days', async t => {
  const key = await buildKey(backend)
  const caller = await resolveCaller(backend, key)
  const { vault, epoch } = caller.scope
  const ids = await insertStoredMemories(backend, caller.scope, [
    { text: 'one', at: 1 },
    { text: 'two', at: 2 },
  ])
  await insertStoredMemories(backend, caller.scope, [{ text: 'alive', at: 1 }])
  const operation = mintId()
  await acceptDeletion(backend, caller, { operation, ids })
  await executeDeletion(backend, { operation, vault, epoch, ids })
  const deletedAgo = async (days: number) => {
    await query(
      `update tombstone_days set day = (now() - make_interval(days => $2))::date where vault = $1`,
      [vault, days],
    )
    const tomb_at = new Date(Date.now() - days * 24 * 3600 * 1000)
    await backend.mongo.memories.updateOne({ vault, _id: ids[0]! }, { $set: { tomb_at } })
    return (await sweepAll(backend))['tombstones']
  }
  t.equal(await deletedAgo(399), 0)
  t.equal(await deletedAgo(402), 1, 'that of today stays')
  t.equal((await readDocuments(backend, key)).length, 2)
  t.equal(await deletedAgo(402), 0)
})

t.test('operations whose job is gone have failed; those with a job wait on', async t => {
  const key = await buildKey(backend)
  const [young, waiting, gone, spread] = [
    await ingest(key),
    await ingest(key),
    await ingest(key),
    await ingest(key),
  ]
  await age(waiting, '6 minutes')
  await age(gone, '6 minutes')
  await age(spread, '6 minutes')
  await query('delete from pgboss.job where id = any($1::uuid[])', [[gone, young]])
  await query('update pgboss.job set id = gen_random_uuid() where id = $1', [spread])
  t.match(await sweepAll(backend), { stranded: 1 })
  t.same(
    [await stateOf(young), await stateOf(waiting), await stateOf(gone), await stateOf(spread)],
    ['accepted', 'accepted', 'failed', 'accepted'],
  )
  const { vault } = await readVaultScope(backend, key)
  t.equal((await vaultRow(backend, vault)).pending, 3)
  t.match(await sweepAll(backend), { stranded: 0 })
})

t.test('operations are kept for 30 days after their end, failed ones for 400', async t => {
  const key = await buildKey(backend)
  const ended = async (state: string, days: number): Promise<string> => {
    const id = await ingest(key)
    await query(
      `update operations set state = $2, finished_at = now() - make_interval(days => $3)
       where id = $1`,
      [id, state, days],
    )
    return id
  }
  const kept = [
    await ended('done', 29),
    await ended('cancelled', 29),
    await ended('failed', 399),
    await ingest(key),
  ]
  const gone = [await ended('done', 31), await ended('cancelled', 31), await ended('failed', 401)]
  t.match(await sweepAll(backend), { operations: 3 })
  t.ok((await Promise.all(kept.map(stateOf))).every(state => state !== undefined))
  t.ok((await Promise.all(gone.map(stateOf))).every(state => state === undefined))
})

t.test('answers to repeated requests are kept for 24 hours', async t => {
  const client = createTestClient(api.base, await buildKey(backend))
  for (const key of ['old', 'new']) await client.post('/v1/keys', {}, { 'idempotency-key': key })
  await ageRows(backend, 'idempotency', '25 hours', { idempotency: 'old' })
  t.match(await sweepAll(backend), { answers: 1 })
  const { rows } = await query('select idempotency from idempotency')
  t.same(rows, [{ idempotency: 'new' }])
})

t.test('the log of changes keeps its newest 1,000 revisions, and a day', async t => {
  const { vault } = await readVaultScope(backend, await buildKey(backend))
  await query('update vaults set revision = 1500 where id = $1', [vault])
  await query(
    `insert into vault_changes (vault, revision, session, at)
     select $1, n, '', now() - case when n <= 300 then interval '2 days' else interval '1 hour' end
     from generate_series(1, 1500) n`,
    [vault],
  )
  t.match(await sweepAll(backend), { changes: 300 }, 'those of today stay')
  await query(`update vault_changes set at = now() - interval '2 days' where vault = $1`, [vault])
  t.match(await sweepAll(backend), { changes: 200 })
  const { rows } = await query(
    'select count(*)::int n, min(revision)::int first from vault_changes where vault = $1',
    [vault],
  )
  t.same(rows, [{ n: 1_000, first: 501 }])
})

t.test('one that fails holds up no other', async t => {
  const warned: unknown[] = []
  const log = Object.assign(Object.create(backend.log) as typeof backend.log, {
    warn: (fields: unknown) => void warned.push(fields),
  })
  const away = { ...backend.mongo, memories: null as never }
  const { vault } = await readVaultScope(backend, await buildKey(backend))
  await query(`insert into erasures (vault, session, up_to, due_at) values ($1, '', 1, now())`, [
    vault,
  ])
  const found = await sweepAll({ ...backend, mongo: away, log })
  t.notOk('erased' in found)
  t.ok('usageDays' in found)
  t.match(warned, [{ sweep: 'erased' }])
})

t.test('the clock sends it, one at a time', async t => {
  const { rows } = await query(`select cron from pgboss.schedule where name = 'sweep'`)
  t.same(rows, [{ cron: '* * * * *' }])
  const send = () =>
    backend.postgres.transaction(tx =>
      backend.queue.send(tx, 'sweep', [{ id: mintId(), data: {}, priority: 0 }]),
    )
  const count = async () =>
    (await query(`select 1 from pgboss.job where name = 'sweep' and state < 'completed'`)).rows
      .length
  await send()
  await send()
  t.equal(await count(), 1)
  await startJobWorkers(backend, 'sweep')
  await waitUntil('it has run', async () => (await count()) === 0)
})

import t from 'tap'
import type { JobName, JobPayloads } from '#shared/domain/jobs.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { copyChunk } from '#shared/vault/copy/chunk.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { cutUpdates } from '#test/support/checks/alter.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import {
  insertMemories,
  readDocuments,
  resolveCaller,
} from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'
import { operationState } from '#test/support/checks/observe-jobs.ts'
import { setOperation } from '#test/support/checks/alter-jobs.ts'

// No worker takes jobs: the tests run them.
const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres
const respondAsync = { prefer: 'respond-async' }

/** The payload of the first job of an operation. */
async function jobOf<Name extends JobName>(operation: string, name: Name) {
  const { rows } = await query<{ data: JobPayloads[Name] }>(
    `select data from pgboss.job where data->>'operation' = $1 and name = $2 order by id limit 1`,
    [operation, name],
  )
  return rows[0]!.data
}

async function ingest(key: string): Promise<string> {
  const messages = [{ role: 'user', content: 'the gate is green' }]
  return (await createTestClient(base, key).post('/v1/memory/ingest', { messages })).body
    .operation_id
}
const storeIngested = async (operation: string) =>
  storeAccepted(backend, [await jobOf(operation, 'ingest')], { again: false })

async function upload(key: string): Promise<string> {
  const { body } = await createTestClient(base, key).send(
    'POST',
    '/v1/memory/upload?session_id=trip',
    {
      body: ['one', 'two'].map(content => JSON.stringify({ content })).join('\n'),
      headers: { 'content-type': 'application/x-ndjson', ...respondAsync },
    },
  )
  return body.operation_id
}

async function buildSource(): Promise<string> {
  const source = await buildKey(backend)
  await insertMemories(backend, source, [{ text: 'fact one' }, { text: 'fact two' }])
  return source
}

async function transfer(key: string, from?: string): Promise<string> {
  const source = from ?? (await buildSource())
  const { body } = await createTestClient(base, source).post(
    '/v1/memory/transfer',
    { destination_key: key },
    respondAsync,
  )
  return body.operation_id
}

const kinds = {
  ingest: { accept: ingest, run: storeIngested, memories: 1 },
  upload: {
    accept: upload,
    run: async (operation: string) => storeChunk(backend, await jobOf(operation, 'upload')),
    memories: 2,
  },
  transfer: {
    accept: transfer,
    run: async (operation: string) => copyChunk(backend, await jobOf(operation, 'copy-chunk')),
    memories: 2,
  },
}

for (const [name, { accept, run, memories }] of Object.entries(kinds)) {
  t.test(`${name}: what a failed try has stored goes with the cancelled work`, async t => {
    const key = await buildKey(backend)
    const [kept] = await insertMemories(backend, key, [{ text: 'a memory of before' }])
    const operation = await accept(key)
    const { restore } = await cutUpdates(backend, 'operations')
    await t.rejects(async () => void (await run(operation)), { message: 'cut' })
    await restore()
    t.equal((await readDocuments(backend, key)).length, 1 + memories)
    const { keyRow: before } = await resolveCaller(backend, key)

    t.match(await cancelAsOperator(backend, operation), { removed: 1, active: 0 })
    const left = (await readDocuments(backend, key)).map(({ _id }) => _id)
    t.same(left, [kept])
    const { keyRow } = await resolveCaller(backend, key)
    t.equal(keyRow.rawUnits, 1)
    t.ok(keyRow.revision > before.revision, 'every process drops them')
    t.equal(await operationState(backend, operation), 'cancelled')
  })
}

for (const [name, { accept, run, memories }] of Object.entries({
  upload: kinds.upload,
  transfer: kinds.transfer,
})) {
  t.test(`${name}: what a later one found there stays`, async t => {
    const key = await buildKey(backend)
    const source = name === 'transfer' ? await buildSource() : key
    const operation = await accept(key, source)
    const { restore } = await cutUpdates(backend, 'operations')
    await t.rejects(async () => void (await run(operation)), { message: 'cut' })
    await restore()
    await setOperation(backend, operation, { state: 'failed' })
    const again = await accept(key, source)
    t.not(again, operation)
    await run(again)
    t.match(await cancelAsOperator(backend, operation), { removed: 1, active: 0 })
    t.equal((await readDocuments(backend, key)).length, memories)
  })
}

t.test('what is finalized stays, also while its job is still there', async t => {
  const key = await buildKey(backend)
  const operation = await ingest(key)
  await storeIngested(operation)
  t.match(await cancelAsOperator(backend, operation), { removed: 1 })
  t.equal((await readDocuments(backend, key)).length, 1)
  t.equal(await operationState(backend, operation), 'done')
})

t.test('conflict: what was acknowledged is finished', async t => {
  const key = await buildKey(backend)
  const { body } = await createTestClient(base, key).send('DELETE', '/v1/memory', {
    headers: respondAsync,
  })
  const operation = body.operation_id
  await t.rejects(cancelAsOperator(backend, operation), {
    reason: 'conflict',
    message: /acknowledged/,
  })
  t.ok(await jobOf(operation, 'clear'))
  t.equal(await operationState(backend, operation), 'running')
})

import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWorker } from '#test/support/processes.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/stored-memories.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readBill } from '#test/support/insert-memories.ts'

t.setTimeout(0)

/** Enough that a worker is killed in the middle of them. */
const memories = 10_000

t.test('workers are killed while they erase: others finish, and count what there was', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const api = await startTestApi(t, backend)

  const tenant = async (rows: number) => {
    const key = await buildKey(backend)
    const texts = Array.from({ length: rows }, (_, n) => ({ text: `note ${n}`, at: n, tokens: 2 }))
    const ids = await insertStoredMemories(backend, await readVaultScope(backend, key), texts, {
      vectors: false,
    })
    return { key, ids, client: createTestClient(api.base, key) }
  }
  const left = async (key: string): Promise<number> => {
    const { vault } = await readVaultScope(backend, key)
    return backend.mongo.memories.countDocuments({ vault })
  }
  const clearings = []
  const midway: boolean[] = []
  // On a busy machine all may be gone before a worker is killed: then another vault is cleared.
  for (let kill = 0; kill < 3 || (kill < 10 && !midway.includes(true)); kill++) {
    const { key, client } = await tenant(memories)
    const { body } = await client.send('DELETE', '/v1/memory', {
      headers: { prefer: 'respond-async' },
    })
    const id = body.operation_id as string
    const doomed = await startWorker(t, config)
    const begun = async () => (await client.get(`/v1/operations/${id}`)).body.progress.done > 0
    await waitUntil('some of it is gone', begun)
    doomed.kill('SIGKILL')
    await doomed.exited
    midway.push((await left(key)) > 0)
    clearings.push({ id, key, client })
  }
  t.ok(midway.includes(true), `killed midway: ${midway.join(', ')}`)

  const single = await tenant(500)
  const deletion = await single.client.post(
    '/v1/memory/delete-ids',
    { ids: [...single.ids.slice(0, 499), mintId()] },
    { prefer: 'respond-async' },
  )
  await startWorker(t, config)
  for (const { id, key, client } of clearings) {
    const done = async () => (await client.get(`/v1/operations/${id}`)).body.state === 'done'
    await waitUntil('the clearing is done', done)
    t.match((await client.get(`/v1/operations/${id}`)).body.outcome.body, { deleted: memories })
    t.equal(await left(key), 0)
  }
  const ofDeletion = async () =>
    (await single.client.get(`/v1/operations/${deletion.body.operation_id}`)).body
  await waitUntil('the deletion is done', async () => (await ofDeletion()).state === 'done')
  const { outcome } = await ofDeletion()
  t.match(outcome.body, { deleted: 499, not_found: 1 })
  t.equal(await readBill(backend, deletion.body.operation_id), 998)
})

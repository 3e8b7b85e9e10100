import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { scheduleExpiries, cancelScheduledExpiries } from '#shared/vault/base/expiries.postgres.ts'
import { buildKey, createTestClient, type TestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/stored-memories.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'

t.setTimeout(0)

/** Enough that a process is killed in the middle of them. */
const memories = 7_000
const stays = 'this one stays'

t.test(
  'processes are killed while they remove what has expired: it is invisible, and counts once',
  async t => {
    const config = await createTestConfig(t)
    const backend = await createTestBackend(t, { config })
    const key = await buildKey(backend)
    const scope = await readVaultScope(backend, key)
    const rows = Array.from({ length: memories }, (_, n) => ({
      text: `note ${n}`,
      at: n,
      tokens: 2,
    }))
    const letExpire = async (): Promise<void> => {
      await insertStoredMemories(backend, scope, rows, { vectors: false })
      const at = Date.now()
      await backend.mongo.memories.updateMany(
        { vault: { $eq: scope.vault }, text: { $regex: '^note' } },
        { $set: { expires_at: new Date(at) } },
      )
      const id = mintId()
      await scheduleExpiries(backend.postgres, [{ id, vault: scope.vault, expiresAt: at }])
      await cancelScheduledExpiries(backend.postgres.query, [id])
    }
    await letExpire()
    await insertStoredMemories(backend, scope, [{ text: stays, at: memories, tokens: 7 }])
    let expiring = memories

    const left = () =>
      backend.mongo.memories.countDocuments({ vault: scope.vault, epoch: scope.epoch })
    /** What a reader is told: all but what is over, or to come again. */
    const look = async (client: TestClient): Promise<boolean> => {
      const { status, body } = await client.get('/v1/memory/list?limit=200')
      if (status === 503) return false
      t.same(
        body.items.map((item: { text: string }) => item.text),
        [stays],
      )
      return true
    }

    const midway: number[] = []
    const isMidway = () => midway.some(count => count > 0)
    for (let kill = 0; kill < 2 || (kill < 10 && !isMidway()); kill++) {
      // On a busy machine all may be gone before a process is killed.
      if ((await left()) === 1) {
        await letExpire()
        expiring += memories
      }
      const doomed = await startWeb(t, config)
      const before = await left()
      const asking = look(createTestClient(doomed.base, key)).catch(() => false)
      await waitUntil('some of it is gone', async () => (await left()) < before)
      doomed.kill('SIGKILL')
      await doomed.exited
      await asking
      midway.push((await left()) - 1)
    }
    t.ok(isMidway(), `killed with ${midway.join(', ')} left`)

    const web = await startWeb(t, config)
    const client = createTestClient(web.base, key)
    await startWorker(t, config)
    await waitUntil('it can be read', () => look(client))
    t.equal(await left(), 1)
    const { keyRow } = await resolveCaller(backend, key)
    t.match(keyRow, { rawUnits: 1, rawTokens: 7, hasExpired: false })
    type Row = { state: string; outcome: { body: { expired: number } } }
    const { items } = (await client.get('/v1/operations?kind=expire')).body as { items: Row[] }
    t.ok(items.every(({ state }) => state === 'done'))
    t.equal(
      items.reduce((sum, { outcome }) => sum + outcome.body.expired, 0),
      expiring,
    )
  },
)

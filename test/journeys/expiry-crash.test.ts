import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { announceExpiries, withdrawExpiries } from '#shared/vault/base/expiries.postgres.ts'
import { buildKey, clientOf, type Client } from '#test/support/api.ts'
import { testBackend, testConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { plant, scopeOf } from '#test/support/stored.ts'
import { until } from '#test/support/until.ts'
import { callerOf } from '#test/support/vault.ts'

t.setTimeout(0)

/** Enough that a process is killed in the middle of them. */
const memories = 7_000
const stays = 'this one stays'

t.test(
  'processes are killed while they remove what is over: nobody sees it, it counts once',
  async t => {
    const config = await testConfig(t)
    const backend = await testBackend(t, { config })
    const key = await buildKey(backend)
    const scope = await scopeOf(backend, key)
    const rows = Array.from({ length: memories }, (_, n) => ({
      text: `note ${n}`,
      at: n,
      tokens: 2,
    }))
    await plant(backend, scope, rows, { vectors: false })
    const at = Date.now()
    await backend.mongo.memories.updateMany(
      { vault: { $eq: scope.vault } },
      { $set: { expires_at: new Date(at) } },
    )
    const id = mintId()
    await announceExpiries(backend.postgres.query, [{ id, vault: scope.vault, at }])
    await withdrawExpiries(backend.postgres.query, [id])
    await plant(backend, scope, [{ text: stays, at: memories, tokens: 7 }])

    const left = () =>
      backend.mongo.memories.countDocuments({ vault: scope.vault, epoch: scope.epoch })
    /** What a reader is told: all but what is over, or to come again. */
    const look = async (client: Client): Promise<boolean> => {
      const { status, body } = await client.get('/v1/memory/list?limit=200')
      if (status === 503) return false
      t.same(
        body.items.map((item: { text: string }) => item.text),
        [stays],
      )
      return true
    }

    const midway: number[] = []
    for (let kill = 0; kill < 2; kill++) {
      const doomed = await startWeb(t, config)
      const before = await left()
      const asking = look(clientOf(doomed.base, key)).catch(() => false)
      await until('some of it is gone', async () => (await left()) < before, 20_000)
      doomed.kill('SIGKILL')
      await doomed.ended
      await asking
      midway.push((await left()) - 1)
    }
    t.ok(
      midway.some(count => count > 0),
      `killed with ${midway.join(', ')} left`,
    )

    const web = await startWeb(t, config)
    const client = clientOf(web.base, key)
    await startWorker(t, config)
    await until('it can be read', () => look(client), 30_000)
    t.equal(await left(), 1)
    const { row } = await callerOf(backend, key)
    t.match(row, { rawUnits: 1, rawTokens: 7, hasOver: false })
    type Row = { state: string; outcome: { body: { expired: number } } }
    const { items } = (await client.get('/v1/operations?kind=expire')).body as { items: Row[] }
    t.ok(items.every(({ state }) => state === 'done'))
    t.equal(
      items.reduce((sum, { outcome }) => sum + outcome.body.expired, 0),
      memories,
    )
  },
)

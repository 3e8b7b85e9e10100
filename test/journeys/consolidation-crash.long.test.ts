import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { readUsageEvents, checkOut, commit, ingestTexts } from '#test/support/consolidation.ts'
import type { CrashPoint } from '#test/support/crashing-api.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { jobsOf } from '#test/support/observe-jobs.ts'
import { compileCache } from '#test/support/compile-cache.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const { config } = backend

const points: CrashPoint[] = ['fence', 'entries', 'sources', 'settled']
for (const point of points) {
  const promise = `kill -9 of an API after ${point}, three times: committed once, nothing lost`
  t.test(promise, async t => {
    await Promise.all(Array.from({ length: 3 }, () => dies(t, point)))
  })
}

async function dies(t: Test, point: CrashPoint): Promise<void> {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await ingestTexts(client, [
    'We adopted a kitten',
    'She is called Ada',
    'I start in Lisbon on Monday',
  ])
  const { body: batch } = await checkOut(client)

  const dying = await startDying(t, point)
  const lost = commit(createTestClient(dying.base, key), batch.batch_id, [
    { text: 'The user adopted a kitten, Ada.', importance: 6 },
    { text: 'The user moved to Lisbon.', importance: 9 },
  ])
  await t.rejects(lost, 'the answer is lost with the process')
  t.same(await dying.ended, [null, 'SIGKILL'])

  t.equal((await checkOut(client)).body.batch_id, null, 'what is being committed is not lent')
  const again = await commit(client, batch.batch_id, [{ text: 'other words', importance: 1 }])
  t.match(again, {
    status: 200,
    body: {
      already_committed: true,
      sources_consolidated: 3,
      created: [{ importance: 6 }, { importance: 9 }],
      reflection: {
        unconsolidated: { raw: { units: 0, est_tokens: 0 }, tier2: { count: 2, importance: 15 } },
      },
    },
  })
  const { body: found } = await client.post('/v1/memory/search', {
    query: 'kitten, Lisbon',
    limit: 10,
    tiers: [2],
  })
  const ids = (rows: { id: string }[]): string[] => rows.map(({ id }) => id).sort()
  t.same(ids(found.memories), ids(again.body.created), 'each reflection is found once')
  await quiescent(t, key, batch)
}

/** Nothing is waiting any more; one bill, and every source marked by this batch alone. */
async function quiescent(
  t: Test,
  key: string,
  { batch_id, source_ids }: { batch_id: string; source_ids: string[] },
): Promise<void> {
  const { mongo } = backend
  await waitUntil('the queue is empty', async () => {
    const jobs = await jobsOf<{ batch: string }>(backend, 'commit-apply')
    return jobs.every(({ state, data }) => state === 'completed' || data.batch !== batch_id)
  })
  const { vault } = (await resolveCaller(backend, key)).scope
  t.equal((await readUsageEvents(backend, vault, 'commit')).length, 1)
  const sources = await mongo.memories.find({ vault, _id: { $in: source_ids } }).toArray()
  t.equal(sources.length, 3)
  for (const source of sources) t.same(source.consolidated_by, [batch_id])
}

async function startDying(t: Test, point: CrashPoint) {
  const child = fork(
    fileURLToPath(new URL('../support/crashing-api.ts', import.meta.url)),
    [point],
    {
      // Not the loaders of the test runner.
      execArgv: [],
      env: {
        PATH: process.env.PATH,
        ...compileCache,
        DATABASE_URL: config.databaseUrl,
        MONGODB_URI: config.mongodbUri,
        MASTER_KEY: config.masterKeys[0]!.key.toString('hex'),
        KEY_PEPPER: config.keyPepper,
        RATE_LIMITS: 'off',
      },
    },
  )
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const started = once(child, 'message') as Promise<[{ port: number }]>
  const failed = ended.then(([code, signal]) => {
    throw new Error(`the API ended before it listened: ${code ?? signal}`)
  })
  const [{ port }] = await Promise.race([started, failed])
  return { base: `http://127.0.0.1:${port}`, ended }
}

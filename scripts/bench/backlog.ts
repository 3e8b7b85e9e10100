import { PgBoss } from 'pg-boss'
import { createBenchKey, randomSentence, seededRandom } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'
import { report } from '#scripts/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/bench/process.ts'
import { watchResidentMemory } from '#scripts/bench/resident-memory.ts'
import { jobOptions } from '#shared/domain/jobs.ts'

const exchanges = 20_000
/** A vault may have 50,000 pieces of work waiting; several are as in an outage. */
const vaults = 10
const inFlight = 50
const floorQueue = 'floor'

const { env, config, backend } = await openBenchService({ EMBEDDINGS: 'local' })
const next = seededRandom(7)
const texts = Array.from({ length: exchanges }, () => randomSentence(20, next))

const accepting = await acceptAll()
await countRows()
const worker = await startProcess('workers/index.ts', env, ['ingest'])
const watched = watchResidentMemory(worker)
const rates = await watchDrain()
const peak = await watched.peak()
await worker.stop()
const embedding = await rateOfEmbedder()
const floor = await rateOfBareJobs()
await backend.close()

report('exchanges waiting', exchanges)
report('accepted over HTTP', accepting, { unit: '/s' })
report('floor: bare jobs fetched and completed', floor, { unit: '/s' })
report('exchanges drained', rates.all, { unit: '/s' })
report('the local embedder alone', embedding, { unit: '/s' })
report('drained / floor', rates.all / floor, { bar: { least: 0.5 } })
report('drained / floor, without the embedder’s share', 1 / (1 / rates.all - 1 / embedding) / floor)
report('the last quarter / the first quarter', rates.last / rates.first, { bar: { least: 0.8 } })
report('growth of the worker after the first quarter', peak - rates.memory, {
  unit: 'MiB',
  bar: { most: 64 },
})

/** @returns exchanges a second */
async function acceptAll(): Promise<number> {
  const web = await startProcess('api/index.ts', env)
  const posts = await Promise.all(
    Array.from({ length: vaults }, async () =>
      createPoster(web.port, '/v1/memory/ingest', await createBenchKey(backend, config)),
    ),
  )
  const startedAt = performance.now()
  for (let start = 0; start < exchanges; start += inFlight) {
    const answers = await Promise.all(
      texts.slice(start, start + inFlight).map((content, index) => {
        const body = JSON.stringify({ messages: [{ role: 'user', content }] })
        return posts[(start + index) % vaults]!(body)
      }),
    )
    const wrong = answers.find(({ status }) => status !== 202)
    if (wrong) throw new Error(`${wrong.status} ${wrong.text}`)
  }
  const seconds = (performance.now() - startedAt) / 1_000
  await web.stop()
  return exchanges / seconds
}

/**
 * Removes dead rows and has Postgres count the rest, as autovacuum does within a minute: both sides start in this
 * state. Without, each bare fetch sorts all jobs that wait, and the floor is a twentieth of what it is.
 */
async function countRows(): Promise<void> {
  await backend.postgres.query('vacuum analyze')
}

/** Exchanges a second, and the worker's memory in MiB after the first quarter. */
async function watchDrain() {
  const startedAt = performance.now()
  /** Milliseconds until a share of all is done. */
  const until = async (share: number): Promise<number> => {
    while ((await countOpen()) > exchanges * (1 - share))
      await new Promise(resolve => setTimeout(resolve, 50))
    return performance.now() - startedAt
  }
  const first = await until(0.25)
  const memory = watched.now()
  const third = await until(0.75)
  const all = await until(1)
  const rate = (count: number, ms: number): number => count / (ms / 1_000)
  return {
    first: rate(exchanges / 4, first),
    last: rate(exchanges / 4, all - third),
    all: rate(exchanges, all),
    memory,
  }
}

async function countOpen(): Promise<number> {
  const { rows } = await backend.postgres.query<{ n: number }>(
    `select count(*)::int n from operations where state in ('accepted', 'running')`,
  )
  return rows[0]!.n
}

async function rateOfEmbedder(): Promise<number> {
  const embedder = await backend.embedders.get()
  const startedAt = performance.now()
  for (let start = 0; start < exchanges; start += 200)
    await embedder.embedTexts(texts.slice(start, start + 200))
  return exchanges / ((performance.now() - startedAt) / 1_000)
}

/** As many jobs of the same texts, fetched and completed by pg-boss with the batches of the worker. */
async function rateOfBareJobs(): Promise<number> {
  const boss = new PgBoss({ connectionString: config.databaseUrl, schema: 'pgboss', max: 4 })
  boss.on('error', error => process.stderr.write(`${error.message}\n`))
  await boss.start()
  await boss.createQueue(floorQueue)
  for (let start = 0; start < exchanges; start += 1_000)
    await boss.insert(
      floorQueue,
      texts.slice(start, start + 1_000).map(content => ({ data: { content } })),
    )
  await countRows()
  const { batchSize, concurrency } = jobOptions.ingest
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (;;) {
        const jobs = await boss.fetch(floorQueue, { batchSize })
        if (jobs.length === 0) return
        await boss.complete(
          floorQueue,
          jobs.map(({ id }) => id),
        )
      }
    }),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  await boss.stop({ graceful: false })
  return exchanges / seconds
}

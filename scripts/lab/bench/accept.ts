import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { median, measureRate, report } from '#scripts/lab/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/lab/bench/process.ts'
import {
  createBenchKey,
  openBenchService,
  randomSentence,
} from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { mintId } from '#shared/core/ids.ts'

const { env, config, backend } = await openBenchService()
const keys = [await createBenchKey(backend, config), await createBenchKey(backend, config)]
await backend.close()

const next = seededRandom(2)
const messages = [
  { role: 'user', content: randomSentence(25, next) },
  { role: 'assistant', content: randomSentence(40, next) },
]
const body = JSON.stringify({ messages })

const boss = new PgBoss({ connectionString: config.databaseUrl, supervise: false, schedule: false })
await boss.start()
await boss.createQueue('bare', { notify: true })
const pool = new pg.Pool({ connectionString: config.databaseUrl, max: 10 })
await pool.query('create table bare (id uuid primary key)')

/** The floor of an accepted exchange: one row and one job in a transaction. */
const sendBareJob = async (): Promise<void> => {
  const client = await pool.connect()
  const id = mintId()
  const db = {
    executeSql: (text: string, values?: unknown[]) => client.query(text, values as unknown[]),
  }
  await client.query('begin')
  await client.query('insert into bare values ($1)', [id])
  await boss.send('bare', { messages }, { id, db })
  await client.query('commit')
  client.release()
}

const web = await startProcess('api/index.ts', env)
const posts = keys.map(key => createPoster(web.port, '/v1/memory/ingest', key))
let turn = 0
const ingestOnce = async (): Promise<void> => {
  const { status, text } = await posts[turn++ % posts.length]!(body)
  if (status !== 202) throw new Error(`${status} ${text}`)
}

for (const lanes of [1, 16]) {
  const bare: number[] = []
  const accepted: number[] = []
  for (let round = 0; round < 3; round++) {
    bare.push(await measureRate(lanes, 2, sendBareJob))
    accepted.push(await measureRate(lanes, 2, ingestOnce))
  }
  report(`floor: bare transactional sends, ${lanes} in flight`, median(bare), { unit: '/s' })
  report(`accepted exchanges over HTTP, ${lanes} in flight`, median(accepted), { unit: '/s' })
  report('accepted / floor', median(accepted) / median(bare), { bar: { least: 0.6 } })
}

await web.stop()
await boss.stop({ graceful: false })
await pool.end()

import { MongoClient } from 'mongodb'
import { median, report } from '#scripts/lab/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/lab/bench/process.ts'
import {
  createBenchKey,
  openBenchService,
  randomSentence,
} from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

const exchanges = 2_500
const turns = 4

const { env, config, backend } = await openBenchService()
const embedder = await backend.embedders.get()
const next = seededRandom(3)

const client = await new MongoClient(config.mongodbUri).connect()
const memories = client.db().collection('memories')

const floors: number[] = []
const rates: number[] = []
const embedding: number[] = []
for (let round = 0; round < 3; round++) {
  const key = await createBenchKey(backend, config)
  const texts = Array.from({ length: exchanges * turns }, () => randomSentence(40, next))
  const vault = await acceptExchanges(key, texts)

  const worker = await startProcess('workers/index.ts', env, ['ingest'])
  const storingStartedAt = performance.now()
  await waitUntilStored(vault)
  rates.push(texts.length / ((performance.now() - storingStartedAt) / 1_000))
  await worker.stop()

  const stored = await memories.find({ vault }).toArray()
  const bare = client.db().collection(`bare_${round}`)
  await bare.createIndexes((await memories.indexes()).filter(({ name }) => name !== '_id_'))
  const insertStartedAt = performance.now()
  for (let start = 0; start < stored.length; start += 500) {
    const batch = stored.slice(start, start + 500)
    await bare.insertMany(batch, { ordered: false, writeConcern: { w: 1, journal: true } })
  }
  floors.push(stored.length / ((performance.now() - insertStartedAt) / 1_000))

  const embeddingStartedAt = performance.now()
  for (let start = 0; start < texts.length; start += 200) {
    await embedder.embedTexts(texts.slice(start, start + 200))
  }
  embedding.push(texts.length / ((performance.now() - embeddingStartedAt) / 1_000))
}
const floor = median(floors)
const storeRate = median(rates)
const embeddingRate = median(embedding)
report('floor: bare insertMany of the same documents', floor, { unit: '/s' })
report('stored through queue and worker, embedding included', storeRate, { unit: '/s' })
report('the local embedder alone', embeddingRate, { unit: '/s' })
report('stored / floor, embedding included', storeRate / floor)
report(
  'stored / floor, without the embedder’s share',
  1 / (1 / storeRate - 1 / embeddingRate) / floor,
  {
    bar: { least: 0.4 },
  },
)

await measureLatency()
await backend.close()
await client.close()

/** Accepts all exchanges before the worker starts, so that only the worker is measured. */
async function acceptExchanges(key: string, texts: string[]): Promise<string> {
  const web = await startProcess('api/index.ts', env)
  const post = createPoster(web.port, '/v1/memory/ingest', key)
  const bodies = Array.from({ length: exchanges }, (_, index) =>
    JSON.stringify({
      messages: texts
        .slice(index * turns, (index + 1) * turns)
        .map((content, turn) => ({ role: turn % 2 === 0 ? 'user' : 'assistant', content })),
    }),
  )
  while (bodies.length > 0) {
    const answers = await Promise.all(bodies.splice(0, 50).map(post))
    const wrong = answers.find(({ status }) => status !== 202)
    if (wrong) throw new Error(`${wrong.status} ${wrong.text}`)
  }
  await web.stop()
  const { rows } = await backend.postgres.query<{ vault: string }>(
    'select vault from operations order by id desc limit 1',
  )
  return rows[0]!.vault
}

async function waitUntilStored(vault: string): Promise<void> {
  for (;;) {
    const { rows } = await backend.postgres.query<{ n: number }>(
      `select count(*)::int n from operations where vault = $1 and state <> 'done'`,
      [vault],
    )
    if (rows[0]!.n === 0) return
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** Measures the time from the 202 until a search finds the exchange, on an otherwise idle machine. */
async function measureLatency(): Promise<void> {
  const web = await startProcess('api/index.ts', env)
  const worker = await startProcess('workers/index.ts', env, ['ingest'])
  const key = await createBenchKey(backend, config)
  const ingest = createPoster(web.port, '/v1/memory/ingest', key)
  const search = createPoster(web.port, '/v1/memory/search', key)
  const times: number[] = []
  for (let run = 0; run < 30; run++) {
    const token = `marker${run}x${Math.floor(next() * 1e6)}`
    const content = `${token} ${randomSentence(20, next)}`
    await ingest(JSON.stringify({ messages: [{ role: 'user', content }] }))
    const accepted = performance.now()
    while (!(await search(JSON.stringify({ query: token, limit: 1 }))).text.includes(content)) {
      if (performance.now() - accepted > 10_000) throw new Error('not searchable within 10 s')
      await new Promise(resolve => setTimeout(resolve, 2))
    }
    times.push(performance.now() - accepted)
    await new Promise(resolve => setTimeout(resolve, 30))
  }
  report('from the 202 until searchable, median', median(times), { unit: 'ms', bar: { most: 60 } })
  await web.stop()
  await worker.stop()
}

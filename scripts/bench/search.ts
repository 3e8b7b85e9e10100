import { MongoClient } from 'mongodb'
import usearch from 'usearch'
import { vectorForText, startEmbeddingDouble } from '#scripts/bench/embedding-double.ts'
import { fillVault } from '#scripts/bench/fill-vault.ts'
import { median, quantile, measureRate, report, timeRuns } from '#scripts/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/bench/process.ts'
import {
  createBenchEnvironment,
  createBenchKey,
  log,
  seededRandom,
  randomSentence,
} from '#scripts/bench/bench-environment.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'

const count = 10_000
const dimension = 1_536
const model = 'openai/bench'
const concurrency = 16

const embeddingDouble = await startEmbeddingDouble(dimension)
const env = await createBenchEnvironment({
  EMBEDDINGS: model,
  OPENAI_BASE_URL: embeddingDouble.baseUrl,
  OPENAI_API_KEY: 'none',
})
const config = readConfig(env)
const backend = await openBackend(config, log, 'web')
const key = await createBenchKey(backend, config)
const vectorMatrix = new Float32Array(count * dimension)
let filled = 0
const ids = await fillVault(backend, key, {
  count,
  words: 30,
  seed: 1,
  from: Date.now() - count * 600_000,
  step: 600_000,
  embedTexts: async texts =>
    texts.map(text => {
      const vector = vectorForText(text, dimension)
      vectorMatrix.set(vector, filled++ * dimension)
      return vector
    }),
})
const next = seededRandom(2)
const questions = Array.from({ length: 50 }, () => randomSentence(6, next))
const questionVectors = questions.map(text => vectorForText(text, dimension))
await backend.close()

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection<{ _id: string }>('memories')
let turn = 0
const searchFloor = async (): Promise<void> => {
  const vector = questionVectors[turn++ % questions.length]!
  const match = usearch.exactSearch(vectorMatrix, vector, dimension, 10, 'ip' as never, 1)
  const row = Number((match as { keys: BigUint64Array }).keys[0])
  await memories.findOne({ _id: ids[row]! }, { projection: { vectors: 0 } })
}

const web = await startProcess('api/index.ts', env)
const post = createPoster(web.port, '/v1/memory/search', key)
const bodies = questions.map(query => JSON.stringify({ query, limit: 10 }))
const search = async (): Promise<void> => {
  const { status, text } = await post(bodies[turn++ % bodies.length]!)
  if (status !== 200) throw new Error(`${status} ${text}`)
}
for (const _ of bodies) await search()

// Interleaved, so that a change of the machine's speed affects both.
const [floorTimes, searchTimes]: [number[], number[]] = [[], []]
for (let round = 0; round < 5; round++) {
  floorTimes.push(...(await timeRuns(60, searchFloor)))
  searchTimes.push(...(await timeRuns(100, search)))
}
report('floor: float32 scan plus findOne, p50', median(floorTimes), { unit: 'ms' })
report('search over HTTP, p50', median(searchTimes), { unit: 'ms' })
report('search over HTTP, p99', quantile(searchTimes, 0.99), { unit: 'ms' })
report('search / floor, p50', median(searchTimes) / median(floorTimes), { bar: { most: 0.5 } })

const rates: [number[], number[]] = [[], []]
for (let round = 0; round < 3; round++) {
  rates[0].push(await measureRate(concurrency, 2, searchFloor))
  rates[1].push(await measureRate(concurrency, 2, search))
}
report(`floor at ${concurrency} clients`, median(rates[0]), { unit: '/s' })
report(`search at ${concurrency} clients, one web process`, median(rates[1]), { unit: '/s' })
report('search / floor, throughput', median(rates[1]) / median(rates[0]), { bar: { least: 3 } })

await web.stop()
await mongo.close()
embeddingDouble.close()

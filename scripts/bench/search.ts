import { MongoClient } from 'mongodb'
import usearch from 'usearch'
import { directionOf, startEmbeddingDouble } from '#scripts/bench/embedding-double.ts'
import { fill } from '#scripts/bench/filled.ts'
import { median, quantile, rateOf, report, timeEach } from '#scripts/bench/measure.ts'
import { poster, startProcess } from '#scripts/bench/process.ts'
import { benchEnvironment, benchKey, log, random, sentence } from '#scripts/bench/vault.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'

const count = 10_000
const dimension = 1_536
const model = 'openai/bench'
const lanes = 16

const double = await startEmbeddingDouble(dimension)
const env = await benchEnvironment({
  EMBEDDINGS: model,
  OPENAI_BASE_URL: double.baseUrl,
  OPENAI_API_KEY: 'none',
})
const config = readConfig(env)
const backend = await openBackend(config, log, 'web')
const key = await benchKey(backend, config)
const block = new Float32Array(count * dimension)
let filled = 0
const ids = await fill(backend, key, {
  count,
  words: 30,
  seed: 1,
  from: Date.now() - count * 600_000,
  step: 600_000,
  vectorsOf: async texts =>
    texts.map(text => {
      const vector = directionOf(text, dimension)
      block.set(vector, filled++ * dimension)
      return vector
    }),
})
const next = random(2)
const questions = Array.from({ length: 50 }, () => sentence(6, next))
const questionVectors = questions.map(text => directionOf(text, dimension))
await backend.close()

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection<{ _id: string }>('memories')
let turn = 0
const floor = async (): Promise<void> => {
  const vector = questionVectors[turn++ % questions.length]!
  const found = usearch.exactSearch(block, vector, dimension, 10, 'ip' as never, 1)
  const row = Number((found as { keys: BigUint64Array }).keys[0])
  await memories.findOne({ _id: ids[row]! }, { projection: { vectors: 0 } })
}

const web = await startProcess('api/index.ts', env)
const post = poster(web.port, '/v1/memory/search', key)
const bodies = questions.map(query => JSON.stringify({ query, limit: 10 }))
const search = async (): Promise<void> => {
  const { status, text } = await post(bodies[turn++ % bodies.length]!)
  if (status !== 200) throw new Error(`${status} ${text}`)
}
for (const _ of bodies) await search()

// In turns, so that a change of the machine's speed meets both.
const [floorTimes, searchTimes]: [number[], number[]] = [[], []]
for (let round = 0; round < 5; round++) {
  floorTimes.push(...(await timeEach(60, floor)))
  searchTimes.push(...(await timeEach(100, search)))
}
report('floor: float32 scan plus findOne, p50', median(floorTimes), { unit: 'ms' })
report('search over HTTP, p50', median(searchTimes), { unit: 'ms' })
report('search over HTTP, p99', quantile(searchTimes, 0.99), { unit: 'ms' })
report('search / floor, p50', median(searchTimes) / median(floorTimes), { bar: { most: 0.5 } })

const rates: [number[], number[]] = [[], []]
for (let round = 0; round < 3; round++) {
  rates[0].push(await rateOf(lanes, 2, floor))
  rates[1].push(await rateOf(lanes, 2, search))
}
report(`floor at ${lanes} clients`, median(rates[0]), { unit: '/s' })
report(`search at ${lanes} clients, one web process`, median(rates[1]), { unit: '/s' })
report('search / floor, throughput', median(rates[1]) / median(rates[0]), { bar: { least: 3 } })

await web.stop()
await mongo.close()
double.close()

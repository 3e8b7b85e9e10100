import { MongoClient } from 'mongodb'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { vectorForText } from '#scripts/lab/bench/embedding-double.ts'
import { median, quantile, measureRate, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/lab/bench/process.ts'
import { cpuSeconds } from '#scripts/lab/bench/proxy/load.ts'
import {
  createFloat32Scan,
  createInt8Scan,
  type BareScan,
} from '#scripts/lab/bench/search/bare-scans.ts'
import { seedVaults, type SeededVault } from '#scripts/lab/bench/seeded-vaults.ts'

const count = 10_000
const dimension = 1_536
const concurrency = 16
const cpuRuns = 500
const warmUpRuns = 500

const vectorMatrix = new Float32Array(count * dimension)
let filled = 0
const { env, config, vaults, close } = await seedVaults({
  sizes: [count],
  dimension,
  step: 600_000,
  onVector: vector => vectorMatrix.set(vector, filled++ * dimension),
})
const [{ key, ids }] = vaults as [SeededVault]
const next = seededRandom(2)
const questions = Array.from({ length: 50 }, () => randomSentence(6, next))
const questionVectors = questions.map(text => vectorForText(text, dimension))

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection<{ _id: string }>('memories')
let turn = 0
/** A question answered without a service: a scan in this process, and the text of the best row. */
const answerBare = (scan: BareScan) => async (): Promise<void> => {
  const row = scan(questionVectors[turn++ % questions.length]!)
  await memories.findOne({ _id: ids[row]! }, { projection: { vectors: 0 } })
}
const float32Floor = answerBare(createFloat32Scan(vectorMatrix, dimension))
const int8Floor = answerBare(createInt8Scan(vectorMatrix, dimension))

const web = await startProcess('api/index.ts', env)
const post = createPoster(web.port, '/v1/memory/search', key)
const bodies = questions.map(query => JSON.stringify({ query, limit: 10 }))
const search = async (): Promise<void> => {
  const { status, text } = await post(bodies[turn++ % bodies.length]!)
  if (status !== 200) throw new Error(`${status} ${text}`)
}
// Until most of it is compiled: a process runs for days.
for (let n = 0; n < warmUpRuns; n++) await search()

// Interleaved, so that a change of the machine's speed affects all.
const [float32Times, int8Times, searchTimes]: number[][] = [[], [], []]
for (let round = 0; round < 5; round++) {
  float32Times!.push(...(await timeRuns(60, float32Floor)))
  int8Times!.push(...(await timeRuns(60, int8Floor)))
  searchTimes!.push(...(await timeRuns(100, search)))
}
const [float32Ms, int8Ms, searchMs] = [float32Times!, int8Times!, searchTimes!].map(median)
report('floor: float32 scan plus findOne, p50', float32Ms!, { unit: 'ms' })
report('int8 floor: int8 scan, best rescored, plus findOne, p50', int8Ms!, { unit: 'ms' })
report('search over HTTP, p50', searchMs!, { unit: 'ms' })
report('search over HTTP, p99', quantile(searchTimes!, 0.99), { unit: 'ms' })
report('search / floor, p50', searchMs! / float32Ms!, { bar: { most: 0.35 } })
report('search / int8 floor, p50', searchMs! / int8Ms!, { bar: { most: 1 } })
const searchCpu = await cpuOf(web.child.pid!, search)
// The CPU of this process, which scans and holds the driver.
const float32Cpu = await cpuOf(process.pid, float32Floor)
const int8Cpu = await cpuOf(process.pid, int8Floor)
report('search / floor, CPU', searchCpu / float32Cpu, { bar: { most: 0.5 } })
report('search / int8 floor, CPU', searchCpu / int8Cpu)

const rates: number[][] = [[], [], []]
for (let round = 0; round < 3; round++) {
  for (const [n, work] of [float32Floor, int8Floor, search].entries())
    rates[n]!.push(await measureRate(concurrency, 2, work))
}
const [float32Rate, int8Rate, searchRate] = rates.map(median)
report(`floor at ${concurrency} clients`, float32Rate!, { unit: '/s' })
report(`int8 floor at ${concurrency} clients`, int8Rate!, { unit: '/s' })
report(`search at ${concurrency} clients, one web process`, searchRate!, { unit: '/s' })
report('search / floor, throughput', searchRate! / float32Rate!, { bar: { least: 3 } })
report('search / int8 floor, throughput', searchRate! / int8Rate!, { bar: { least: 1 } })

await web.stop()
await mongo.close()
close()

/** CPU seconds of a process, all its threads, during `cpuRuns` runs. */
async function cpuOf(pid: number, work: () => Promise<void>): Promise<number> {
  const before = cpuSeconds(pid)
  await timeRuns(cpuRuns, work)
  return cpuSeconds(pid) - before
}

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { MongoClient, type Binary } from 'mongodb'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { median, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { createPoster, postUntilLoaded, startProcess } from '#scripts/lab/bench/process.ts'
import { cpuSeconds } from '#scripts/lab/bench/proxy/load.ts'
import { seedVaults } from '#scripts/lab/bench/seeded-vaults.ts'

const sizes = [10_000, 50_000] as const
const dimension = 1_536
const starts = 3
const longestTurnPreload = fileURLToPath(new URL('longest-turn.ts', import.meta.url))

const { env, config, space, vaults, close } = await seedVaults({ sizes, dimension })

const next = seededRandom(4)
const body = (): string => JSON.stringify({ query: randomSentence(6, next), limit: 10 })
const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection<MemoryRow>('memories')
type MemoryRow = { _id: string; vectors: Record<string, Binary> }

const readySeconds: number[] = []
const firstTimes: number[][] = sizes.map(() => [])
const warmTimes: number[][] = sizes.map(() => [])
const cpuTimes: number[][] = sizes.map(() => [])
const floorTimes: number[][] = sizes.map(() => [])
const longestTurns: number[][] = sizes.map(() => [])

for (let start = 0; start < starts; start++) {
  const startedAt = performance.now()
  const web = await startProcess('api/index.ts', env, [], ['--import', longestTurnPreload])
  readySeconds.push((performance.now() - startedAt) / 1_000)
  for (const [n, { key, ids }] of vaults.entries()) {
    floorTimes[n]!.push(await time(() => readVectors(ids)))
    const post = createPoster(web.port, '/v1/memory/search', key)
    const cpuBefore = cpuSeconds(web.child.pid!)
    web.child.send({ turns: 'reset' })
    firstTimes[n]!.push(await time(() => postUntilLoaded(post, body())))
    cpuTimes[n]!.push(cpuSeconds(web.child.pid!) - cpuBefore)
    longestTurns[n]!.push(await readLongestTurn(web.child))
    warmTimes[n]!.push(...(await timeRuns(30, () => postUntilLoaded(post, body()))))
  }
  await web.stop()
}

report('web process: start until ready', median(readySeconds), { unit: 's' })
for (const [n, count] of sizes.entries()) {
  const name = `${count.toLocaleString('en')} × ${dimension.toLocaleString('en')}`
  const [first, warm, floor] = [firstTimes, warmTimes, floorTimes].map(of => median(of[n]!))
  const megabytes = (count * dimension * 4) / 1e6
  report(`first search after a start, ${name}`, first!, { unit: 'ms' })
  report(`its CPU, ${name}`, median(cpuTimes[n]!) * 1_000, { unit: 'ms' })
  const longest = median(longestTurns[n]!)
  report(`longest turn of the event loop meanwhile, ${name}`, longest, { unit: 'ms' })
  report(`warm search, ${name}, p50`, warm!, { unit: 'ms' })
  report(`floor: the driver reads the same vectors, ${name}`, floor!, { unit: 'ms' })
  const loading = megabytes / ((first! - warm!) / 1_000)
  report(`vectors loaded, ${name}`, loading, { unit: 'MB/s', bar: { least: 100 } })
  report(`loading / floor, ${name}`, (first! - warm!) / floor!)
}

await mongo.close()
close()

async function time(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

/** Reads ids and vectors of a vault, and nothing else. */
async function readVectors(ids: readonly string[]): Promise<void> {
  const own = new Set(ids)
  const field = `vectors.${space}`
  const { vault } = (await memories.findOne({ _id: ids[0]! })) as unknown as { vault: string }
  const cursor = memories.find({ vault } as object, { projection: { [field]: 1 }, batchSize: 100 })
  let bytes = 0
  for await (const { _id, vectors } of cursor)
    if (own.has(_id)) bytes += vectors[space]!.buffer.byteLength
  if (bytes === 0) throw new Error('no vectors were read')
}

/** Returns how long the event loop of a process was held at most, in milliseconds. */
async function readLongestTurn(child: ChildProcess): Promise<number> {
  const answer = once(child, 'message') as Promise<[{ longestMs: number }]>
  child.send({ turns: 'read' })
  const [{ longestMs }] = await answer
  return longestMs
}

import usearch from 'usearch'
import { fillVault } from '#scripts/bench/fill-vault.ts'
import { median, quantile, report, timeRuns } from '#scripts/bench/measure.ts'
import { createPoster, postUntilLoaded, startProcess } from '#scripts/bench/process.ts'
import {
  createBenchKey,
  seededRandom,
  randomSentence,
  randomUnitVector,
} from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'

const sizes = [1_000, 10_000, 100_000] as const

const { env, config, backend } = await openBenchService()
const { dimension } = await backend.embedders.get()
const next = seededRandom(9)
const keys: string[] = []
for (const count of sizes) {
  const key = await createBenchKey(backend, config)
  await fillVault(backend, key, {
    count,
    words: 30,
    seed: count,
    from: Date.now() - count * 60_000,
  })
  keys.push(key)
}
await backend.close()

const web = await startProcess('api/index.ts', env)
const bodies = Array.from({ length: 50 }, () =>
  JSON.stringify({ query: randomSentence(6, next), limit: 10 }),
)
const searches = keys.map(key => {
  const post = createPoster(web.port, '/v1/memory/search', key)
  let turn = 0
  return async (): Promise<void> => {
    const { status, text } = await post(bodies[turn++ % bodies.length]!)
    if (status !== 200) throw new Error(`${status} ${text}`)
  }
})
const block = new Float32Array(sizes.at(-1)! * dimension)
for (let row = 0; row < sizes.at(-1)!; row++)
  block.set(randomUnitVector(dimension, next), row * dimension)
const question = randomUnitVector(dimension, next)
const scans = sizes.map(count => {
  const rows = block.subarray(0, count * dimension)
  return async () => void usearch.exactSearch(rows, question, dimension, 10, 'ip' as never, 1)
})

for (const [n, key] of keys.entries()) {
  const post = createPoster(web.port, '/v1/memory/search', key)
  const startedAt = performance.now()
  await postUntilLoaded(post, bodies[0]!)
  const ms = performance.now() - startedAt
  report(`first search, ${sizes[n]!.toLocaleString('en')} memories`, ms, { unit: 'ms' })
}
for (const search of searches) for (const _ of bodies) await search()
const [searchTimes, scanTimes]: [number[][], number[][]] = [
  sizes.map(() => []),
  sizes.map(() => []),
]
// Interleaved, so that a change of the machine's speed affects all of them.
for (let round = 0; round < 5; round++) {
  for (const n of sizes.keys()) {
    searchTimes[n]!.push(...(await timeRuns(60, searches[n]!)))
    scanTimes[n]!.push(...(await timeRuns(20, scans[n]!)))
  }
}
for (const [n, count] of sizes.entries()) {
  const name = `${count.toLocaleString('en')} memories`
  report(`search over HTTP, ${name}, p50`, median(searchTimes[n]!), { unit: 'ms' })
  report(`search over HTTP, ${name}, p99`, quantile(searchTimes[n]!, 0.99), { unit: 'ms' })
  report(`floor: float32 scan of ${name}, p50`, median(scanTimes[n]!), { unit: 'ms' })
}
const perThousand = (times: number[][], n: number): number =>
  (median(times[n]!) - median(times[n - 1]!)) / ((sizes[n]! - sizes[n - 1]!) / 1_000)
report('1,000 memories more cost, from 1,000 to 10,000', perThousand(searchTimes, 1) * 1_000, {
  unit: 'µs',
})
report('1,000 memories more cost, from 10,000 to 100,000', perThousand(searchTimes, 2) * 1_000, {
  unit: 'µs',
})
report(
  'growth from 10,000 to 100,000 / linear',
  perThousand(searchTimes, 2) / perThousand(searchTimes, 1),
  {
    bar: { most: 1.3 },
  },
)
report(
  'growth per memory / that of the float32 scan',
  perThousand(searchTimes, 2) / perThousand(scanTimes, 2),
  {
    bar: { most: 1 },
  },
)

await web.stop()

import { Agent } from 'node:http'
import { randomSentence, seededRandom } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'
import { median, quantile, report } from '#scripts/bench/measure.ts'
import { createPoster, startProcess, type Poster } from '#scripts/bench/process.ts'
import { residentMemory } from '#scripts/bench/resident-memory.ts'
import { fillUserVaults } from '#scripts/bench/vaults/fill-user-vaults.ts'
import { readGauge } from '#scripts/bench/vaults/read-gauge.ts'

const vaultCount = 10_000
const memoriesEach = 50
/** Longest that the first searches may take together: on a busy machine the last vaults are left out. */
const firstSecondsMax = 300
/** Of the searches after the first of each vault. */
const seconds = 180
const secondsPerSample = 2
const adminSecret = 'secret-of-the-benchmarks'

const { env, config, backend } = await openBenchService({
  EMBEDDINGS: 'local',
  ADMIN_SECRET: adminSecret,
  ADMIN_EMAIL: 'bench@example.com',
})
const seedingStartedAt = performance.now()
const keys = await fillUserVaults(backend, config, { vaultCount, memoriesEach, seed: 7 })
report('vaults seeded in', (performance.now() - seedingStartedAt) / 1_000, { unit: 's' })
await backend.close()

const web = await startProcess('api/index.ts', env)
const next = seededRandom(8)
// One connection for all: each poster would open its own.
const agent = new Agent({ keepAlive: true })
const posters = keys.map(key => createPoster(web.port, '/v1/memory/search', key, agent))
const atStart = residentMemory(web)

const firstTimes: number[] = []
const firstUntil = performance.now() + firstSecondsMax * 1_000
for (const post of posters) {
  if (performance.now() > firstUntil) break
  firstTimes.push(await timeSearch(post))
}
const searched = posters.slice(0, firstTimes.length)
const afterFirst = residentMemory(web)

const laterTimes: number[] = []
/** Resident MiB of the web process, in order. */
const sizes: number[] = []
const startedAt = performance.now()
for (let elapsed = 0; elapsed < seconds * 1_000; elapsed = performance.now() - startedAt) {
  laterTimes.push(await timeSearch(searched[laterTimes.length % searched.length]!))
  if (elapsed >= sizes.length * secondsPerSample * 1_000) sizes.push(residentMemory(web))
}

const name = `${searched.length.toLocaleString('en')} vaults of ${memoriesEach}`
reportTimes(`${name}, first search of each`, firstTimes)
reportTimes(`${name}, ${seconds} s in turn`, laterTimes)
report(`searches in these ${seconds} s`, laterTimes.length)
report('vaults in memory at the end', await readGauge(web.port, adminSecret, 'vault_images'))
const held = await readGauge(web.port, adminSecret, 'vault_image_bytes')
report('their indexes', held / 1_048_576, { unit: 'MiB' })
report('web process at its start, memory', atStart, { unit: 'MiB' })
report('web process after the first searches, memory', afterFirst, { unit: 'MiB' })
const third = Math.floor(sizes.length / 3)
const growth = median(sizes.slice(-third)) - median(sizes.slice(0, third))
report('growth: the last third of the time less the first', growth, {
  unit: 'MiB',
  bar: { most: 64 },
})

agent.destroy()
await web.stop()

/** @returns milliseconds of a search that was answered with 200. */
async function timeSearch(post: Poster): Promise<number> {
  const body = JSON.stringify({ query: randomSentence(6, next), limit: 10 })
  const sentAt = performance.now()
  const { status, text } = await post(body)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return performance.now() - sentAt
}

function reportTimes(what: string, times: readonly number[]): void {
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
  report(`${what}, p50`, p50, { unit: 'ms' })
  report(`${what}, p99`, p99, { unit: 'ms' })
  report(`${what}, p99 / p50`, p99 / p50, { bar: { most: 4 } })
}

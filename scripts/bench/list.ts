import { MongoClient, type Document } from 'mongodb'
import { resolveCaller, fillVault } from '#scripts/bench/fill-vault.ts'
import { median, report, timeRuns } from '#scripts/bench/measure.ts'
import { createGetter, startProcess } from '#scripts/bench/process.ts'
import { createBenchKey } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'

const count = 100_000
const pageSize = 50
const rounds = 5

const { env, config, backend } = await openBenchService()
const key = await createBenchKey(backend, config)
const from = Date.now() - count * 60_000
await fillVault(backend, key, { count, words: 30, seed: 5, from })
const { scope } = await resolveCaller(backend, key)
await backend.close()

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection('memories')
const web = await startProcess('api/index.ts', env)
const get = createGetter(web.port, key)

/** Reads the same page with the driver: one range of the index, the same fields. */
const readBarePage = async (after?: Date): Promise<void> => {
  const filter: Document = { vault: scope.vault, epoch: scope.epoch, session: '', tier: 1 }
  if (after) filter['at'] = { $lt: after }
  await memories
    .find(filter, {
      projection: { vectors: 0, hash: 0 },
      sort: { at: -1, _id: -1 },
      limit: pageSize,
    })
    .hint('place')
    .toArray()
}

const fetchPage = async (query: string): Promise<{ next_cursor: string }> => {
  const { status, text } = await get(`/v1/memory/list?tier=1&limit=${pageSize}${query}`)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text) as { next_cursor: string }
}
const middle = new Date(from + (count / 2) * 60_000)
const middlePage = await fetchPage(`&to=${middle.toISOString()}`)
const cursor = `&to=${middle.toISOString()}&cursor=${encodeURIComponent(middlePage.next_cursor)}`

for (const [name, floor, ours] of [
  ['first page', () => readBarePage(), () => fetchPage('')],
  ['a page in the middle, by its cursor', () => readBarePage(middle), () => fetchPage(cursor)],
] as const) {
  const [floorTimes, ourTimes]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    floorTimes.push(...(await timeRuns(60, floor)))
    ourTimes.push(...(await timeRuns(60, ours)))
  }
  report(`floor: bare find, ${name}, p50`, median(floorTimes), { unit: 'ms' })
  report(`list over HTTP, ${name}, p50`, median(ourTimes), { unit: 'ms' })
  report(`list / floor, ${name}`, median(ourTimes) / median(floorTimes))
}

await web.stop()
await mongo.close()

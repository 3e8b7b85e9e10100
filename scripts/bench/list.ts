import { MongoClient, type Document } from 'mongodb'
import { callerOf, fill } from '#scripts/bench/filled.ts'
import { median, report, timeEach } from '#scripts/bench/measure.ts'
import { getter, startProcess } from '#scripts/bench/process.ts'
import { benchEnvironment, benchKey, log } from '#scripts/bench/vault.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'

const count = 100_000
const page = 50
const rounds = 5

const env = await benchEnvironment()
const config = readConfig(env)
const backend = await openBackend(config, log, 'web')
const key = await benchKey(backend, config)
const from = Date.now() - count * 60_000
await fill(backend, key, { count, words: 30, seed: 5, from })
const { scope } = await callerOf(backend, key)
await backend.close()

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection('memories')
const web = await startProcess('api/index.ts', env)
const get = getter(web.port, key)

/** The same page as the driver reads it: one range of the index, the same fields. */
const bare = async (after?: Date): Promise<void> => {
  const filter: Document = { vault: scope.vault, epoch: scope.epoch, session: '', tier: 1 }
  if (after) filter['at'] = { $lt: after }
  await memories
    .find(filter, { projection: { vectors: 0, hash: 0 }, sort: { at: -1, _id: -1 }, limit: page })
    .hint('place')
    .toArray()
}

const pageOf = async (query: string): Promise<{ next_cursor: string }> => {
  const { status, text } = await get(`/v1/memory/list?tier=1&limit=${page}${query}`)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text) as { next_cursor: string }
}
const middle = new Date(from + (count / 2) * 60_000)
const deep = await pageOf(`&to=${middle.toISOString()}`)
const cursor = `&to=${middle.toISOString()}&cursor=${encodeURIComponent(deep.next_cursor)}`

for (const [name, floor, ours] of [
  ['first page', () => bare(), () => pageOf('')],
  ['a page in the middle, by its cursor', () => bare(middle), () => pageOf(cursor)],
] as const) {
  const [floorTimes, ourTimes]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    floorTimes.push(...(await timeEach(60, floor)))
    ourTimes.push(...(await timeEach(60, ours)))
  }
  report(`floor: bare find, ${name}, p50`, median(floorTimes), { unit: 'ms' })
  report(`list over HTTP, ${name}, p50`, median(ourTimes), { unit: 'ms' })
  report(`list / floor, ${name}`, median(ourTimes) / median(floorTimes))
}

await web.stop()
await mongo.close()

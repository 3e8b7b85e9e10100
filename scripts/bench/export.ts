import { MongoClient } from 'mongodb'
import { resolveCaller, fillVault } from '#scripts/bench/fill-vault.ts'
import { median, report } from '#scripts/bench/measure.ts'
import { startProcess } from '#scripts/bench/process.ts'
import { createBenchKey } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'

const count = 50_000
const rounds = 5
const mebibyte = 1024 * 1024

const { env, config, backend } = await openBenchService()
const key = await createBenchKey(backend, config)
await fillVault(backend, key, { count, words: 40, seed: 8, from: 1_700_000_000_000 })
const { scope } = await resolveCaller(backend, key)
await backend.close()

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection('memories')
const web = await startProcess('api/index.ts', env)

/** @returns seconds a bare cursor needs for the same documents in the same order. */
async function timeBareCursor(vectors: boolean): Promise<number> {
  const startedAt = performance.now()
  const projection = { hash: 0, stored_at: 0, version: 0, ...(!vectors && { vectors: 0 }) }
  const cursor = memories
    .find({ vault: scope.vault, epoch: scope.epoch }, { projection })
    .sort({ session: 1, tier: 1, at: 1, _id: 1 })
    .hint('place')
    .batchSize(vectors ? 100 : 500)
  let rows = 0
  for await (const _ of cursor) rows++
  if (rows !== count) throw new Error(`${rows} rows`)
  return (performance.now() - startedAt) / 1_000
}

/** @returns seconds and bytes of the export over HTTP. */
async function timeExport(vectors: boolean): Promise<{ seconds: number; bytes: number }> {
  const startedAt = performance.now()
  const answer = await fetch(
    `http://127.0.0.1:${web.port}/v1/memory/export${vectors ? '?vectors=true' : ''}`,
    { headers: { authorization: `Bearer ${key}` } },
  )
  let bytes = 0
  let rows = 0
  for await (const piece of answer.body!) {
    bytes += piece.length
    for (const byte of piece) if (byte === 10) rows++
  }
  if (rows !== count) throw new Error(`${rows} lines`)
  return { seconds: (performance.now() - startedAt) / 1_000, bytes }
}

for (const vectors of [false, true]) {
  const what = vectors ? 'with vectors' : 'without vectors'
  const [floors, exportSeconds, rates]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < (vectors ? 1 : rounds); round++) {
    floors.push(await timeBareCursor(vectors))
    const { seconds, bytes } = await timeExport(vectors)
    exportSeconds.push(seconds)
    rates.push(bytes / mebibyte / seconds)
  }
  report(`floor: bare cursor, ${what}`, count / median(floors), { unit: '/s' })
  report(`exported over HTTP, ${what}`, count / median(exportSeconds), { unit: '/s' })
  report(`exported over HTTP, ${what}`, median(rates), { unit: 'MiB/s' })
  report(`export / floor, memories a second, ${what}`, median(floors) / median(exportSeconds))
}

await web.stop()
await mongo.close()

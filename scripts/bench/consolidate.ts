import { MongoClient } from 'mongodb'
import { resolveCaller, fillVault } from '#scripts/bench/fill-vault.ts'
import { median, report } from '#scripts/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/bench/process.ts'
import { createBenchKey, seededRandom, randomSentence } from '#scripts/bench/bench-environment.ts'
import { openBenchService } from '#scripts/bench/bench-service.ts'

const count = 30_000
const rounds = 15

const { env, config, backend } = await openBenchService()
const key = await createBenchKey(backend, config)
await fillVault(backend, key, { count, words: 30, seed: 6, from: 1_700_000_000_000 })
const { scope } = await resolveCaller(backend, key)
const { space, dimension } = await backend.embedders.get()
const next = seededRandom(7)

const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection<{ _id: string }>('memories')
const bareCollection = mongo.db().collection<{ _id: string; at: Date }>('bare_consolidated')
for (const { name, key: keys, v: _, ...options } of await memories.indexes()) {
  if (name !== '_id_') await bareCollection.createIndex(keys, { name: name!, ...options })
}
const web = await startProcess('api/index.ts', env)
const checkout = createPoster(web.port, '/v1/memory/consolidate/checkout', key)
const commit = createPoster(web.port, '/v1/memory/consolidate/commit', key)
const expectOk = async <Answer>(reply: ReturnType<typeof checkout>): Promise<Answer> => {
  const { status, text } = await reply
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 300)}`)
  return JSON.parse(text) as Answer
}

type Batch = { batch_id: string; count: number; est_tokens: number; source_ids: string[] }

const timings = { read: [], checkout: [], write: [], commit: [] } as Record<string, number[]>
const time = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
  const startedAt = performance.now()
  const result = await work()
  timings[name]!.push(performance.now() - startedAt)
  return result
}
let batchSize = { count: 0, tokens: 0 }
for (let round = 0; round <= rounds; round++) {
  const batch = await time('checkout', () => expectOk<Batch>(checkout(JSON.stringify({ tier: 1 }))))
  batchSize = { count: batch.count, tokens: batch.est_tokens }
  const core = { vault: scope.vault, epoch: scope.epoch, session: '', tier: 1, consolidated: false }
  const sources = await time('read', () =>
    memories
      .find(core, { projection: { text: 1, at: 1, tokens: 1 }, sort: { at: 1, _id: 1 } })
      .hint('unconsolidated')
      .limit(batch.count)
      .toArray(),
  )
  const entries = Array.from({ length: 10 }, () => ({
    text: randomSentence(60, next),
    importance: 5,
  }))
  const body = JSON.stringify({ batch_id: batch.batch_id, entries })
  await time('commit', () => expectOk(commit(body)))
  await bareCollection.insertMany(
    (await memories
      .find({ vault: scope.vault, _id: { $in: batch.source_ids } })
      .hint('_id_')
      .toArray()) as never,
  )
  const reflections = await memories
    .find({ vault: scope.vault, batch: batch.batch_id })
    .hint('lineage')
    .toArray()
  await time('write', async () => {
    const writeConcern = { w: 1, journal: true }
    await bareCollection.insertMany(reflections as never, { ordered: false, writeConcern })
    const ids = { vault: scope.vault, _id: { $in: batch.source_ids } }
    await bareCollection.updateMany(
      ids,
      { $set: { consolidated: true, by: [batch.batch_id] } },
      { writeConcern, hint: '_id_' },
    )
  })
  if (sources.length !== batch.count) throw new Error('the floor read something else')
  // The first round opens connections and loads code.
  if (round === 0) for (const times of Object.values(timings)) times.length = 0
}
const p50 = (name: string): number => median(timings[name]!)
report('memories of a batch', batchSize.count)
report('tokens of a batch', batchSize.tokens)
report(`vectors: ${space}, numbers each`, dimension)
report('floor: bare find of the batch, p50', p50('read'), { unit: 'ms' })
report('checkout of 50,000 tokens over HTTP, p50', p50('checkout'), { unit: 'ms' })
report('checkout / floor', p50('checkout') / p50('read'))
report('floor: bare insert of 10 reflections and mark of their sources, p50', p50('write'), {
  unit: 'ms',
})
report('commit of 10 entries over HTTP, p50', p50('commit'), { unit: 'ms' })
report('commit / floor', p50('commit') / p50('write'))

await web.stop()
await backend.close()
await mongo.close()

import { coalesce } from '#shared/coalesce.ts'
import type { Config } from '#shared/config.ts'
import { createCursors, type Cursors } from '#shared/cursor.ts'
import { settleDefaultModel } from '#shared/embedding/default-model.ts'
import { createEmbedders, type Embedders } from '#shared/embedding/embedders.ts'
import { createLastUsed, type LastUsed } from '#shared/key/last-used.ts'
import { createSeal, type Seal } from '#shared/key/seal.ts'
import type { Log } from '#shared/log.ts'
import { createOpenExchanges, type OpenExchanges } from '#shared/memory/open-exchange.ts'
import { createRecalledTurns, type RecalledTurns } from '#shared/memory/recalled-turns.ts'
import { createExpiry, type Expiry } from '#shared/erasure/expire.ts'
import { openMongo, type Mongo } from '#shared/mongo/connect.ts'
import { memoriesOf, type Memories } from '#shared/mongo/memories.ts'
import { chooseNearest, type Nearest } from '#shared/mongo/nearest.ts'
import { createRetrievalTrail, type RetrievalTrail } from '#shared/org/retrieval-trail.ts'
import { createAccept, type Accept } from '#shared/operation/accept.ts'
import { createAwait, type AwaitOperation } from '#shared/operation/await.ts'
import { openPostgres, type Postgres } from '#shared/postgres/connect.ts'
import { findKeys, type KeyRow } from '#shared/postgres/keys.ts'
import { createUsageWriter, type UsageWriter } from '#shared/postgres/usage.ts'
import { createCatalog, type Catalog } from '#shared/providers/catalog.ts'
import { createUpstream, type Upstream } from '#shared/providers/upstream.ts'
import { openSender, openWorker, type Queue } from '#shared/queue/queue.ts'
import { hearingClearings } from '#shared/recall/image/hear-clearings.ts'
import { createImageSource } from '#shared/recall/image/image-source.ts'
import { createImage } from '#shared/recall/image/image.ts'
import { createImages, type Images } from '#shared/recall/image/images.ts'
import { createQueryVectors, type QueryVectors } from '#shared/recall/question/query-vectors.ts'
import { termsOf } from '#shared/recall/words/words.ts'

/** Everything outside the process, and what is made of it; opened once, passed to whoever needs it. */
export type Backend = {
  config: Config
  log: Log
  now: () => number
  seal: Seal
  cursors: Cursors
  postgres: Postgres
  mongo: Mongo
  memories: Memories
  nearest: Nearest
  queue: Queue
  accept: Accept
  operations: AwaitOperation
  expiry: Expiry
  /** Looks a Memory Key up by its hash; requests that arrive together share a read. */
  findKey: (hash: Buffer) => Promise<KeyRow | undefined>
  lastUsed: LastUsed
  usage: UsageWriter
  retrievals: RetrievalTrail
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  /** Model calls under way, whose exchanges are still to be stored. */
  exchanges: OpenExchanges
  /** What those calls were told, for the next calls of the same turns. */
  recalledTurns: RecalledTurns
  /** Which models can be reached. */
  catalog: Catalog
  /** Where model calls go. */
  upstream: Upstream
  /** Lets running jobs and unwritten bills finish, then closes every connection. */
  close(): Promise<void>
}

/** What a process is for: the web only promises work, a worker does it. */
export type BackendRole = 'web' | 'worker'

/** Answers that have just been heard are stored before the connections close. */
const drainMs = 3_000
/** Bills of reads that the database will not take any more are given up after this. */
const flushMs = 3_000

/** @throws Refusal `unavailable` when a store is out of reach. */
export async function openBackend(asked: Config, log: Log, role: BackendRole): Promise<Backend> {
  const postgres = openPostgres(asked.databaseUrl, {
    max: 10,
    onError: error => log.warn({ err: error }, 'postgres.connection-lost'),
  })
  const { model, inUse } = await settleDefaultModel(postgres, asked, role === 'web' ? log : null)
  const config = { ...asked, embeddings: model }
  const mongo = await openMongo(config.mongodbUri)
  const open = role === 'worker' ? openWorker : openSender
  const queue = await open(config.databaseUrl, log)
  const memories = memoriesOf(mongo)
  const operations = createAwait(postgres)
  const usage = createUsageWriter(postgres, log)
  const retrievals = createRetrievalTrail({ postgres, mongo }, log)
  const lastUsed = createLastUsed(postgres.query, log)
  const hearing = hearingClearings(createImageSource({ memories, postgres }), postgres, vault =>
    images.forget(vault),
  )
  const accept = createAccept(postgres, queue)
  const embedders = createEmbedders(config, inUse)
  const now = Date.now
  const exchanges = createOpenExchanges({ postgres, accept, embedders, usage, now, log })
  const upstream = createUpstream({
    firstByteMs: config.providerFirstByteMs,
    idleMs: config.providerIdleMs,
  })
  const images = createImages(hearing.source, {
    budgetBytes: config.imageCacheBytes,
    createImage: ({ dimension }: { dimension: number }) => createImage({ dimension, termsOf }),
  })

  return {
    config,
    log,
    now,
    seal: createSeal(config.masterKeys),
    cursors: createCursors(config.keyPepper),
    postgres,
    mongo,
    memories,
    nearest: await chooseNearest(mongo, {
      onScan: ({ space, reason }) => log.warn({ space, reason }, 'search.scanning'),
    }),
    queue,
    accept,
    operations,
    expiry: createExpiry({ postgres, mongo, queue, log }),
    findKey: coalesce(
      async hashes => {
        const rows = await findKeys(postgres.query, hashes)
        // An account's own keys are listed nowhere.
        rows.forEach((row, n) => row && row.kind !== 'vault' && lastUsed.touch(hashes[n]!))
        return rows
      },
      { lanes: 2, questionsMax: 200 },
    ),
    lastUsed,
    usage,
    retrievals,
    embedders,
    queryVectors: createQueryVectors(),
    images,
    exchanges,
    recalledTurns: createRecalledTurns(postgres),
    catalog: createCatalog({
      onError: (provider, error) => log.warn({ provider, err: error }, 'models.not-listed'),
    }),
    upstream,
    async close() {
      await exchanges.drain(drainMs)
      await queue.close()
      await Promise.race([
        Promise.all([usage.flush(), lastUsed.flush(), retrievals.flush()]),
        new Promise(done => setTimeout(done, flushMs).unref()),
      ])
      await Promise.all([operations.close(), hearing.close(), upstream.close()])
      await Promise.all([postgres.close(), mongo.close()])
    },
  }
}

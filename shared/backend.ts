import { coalesce } from '#shared/core/batch-loader.ts'
import type { Config } from '#shared/core/config.ts'
import { createCursors, type Cursors } from '#shared/core/cursor.ts'
import { settleDefaultModel } from '#shared/vault/reembed/default-model.ts'
import { createEmbedders, type Embedders } from '#shared/models/embedders.ts'
import { createLastUsed, type LastUsed } from '#shared/access/last-used.ts'
import { createSeal, type Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import { createOpenExchanges, type OpenExchanges } from '#shared/vault/ingest/open-exchange.ts'
import { createRecalledTurns, type RecalledTurns } from '#shared/vault/read/recalled-turns.ts'
import { createExpiry } from '#shared/vault/delete/expire.ts'
import { openMongo, type Mongo } from '#shared/storage/mongo/connect.ts'
import { memoriesOf, type Memories } from '#shared/vault/base/memories.mongo.ts'
import { chooseNearest } from '#shared/vault/read/nearest.mongo.ts'
import { createRetrievalTrail } from '#shared/org/retrieval-trail.ts'
import { createAccept, type Accept } from '#shared/vault/ingest/accept.ts'
import { createAwait, type AwaitOperation } from '#shared/operations/await-operation.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { findKeys, type KeyRow } from '#shared/access/keys.postgres.ts'
import { createUsageWriter, type UsageWriter } from '#shared/billing/usage.postgres.ts'
import { createCatalog, type Catalog } from '#shared/models/catalog.ts'
import { createUpstream, type Upstream } from '#shared/models/upstream.ts'
import { openSender, openWorker, type Queue } from '#shared/storage/queue/queue.ts'
import { hearingClearings } from '#shared/vault/read/invalidate-on-clear.ts'
import { createImageSource } from '#shared/vault/read/index-source.ts'
import { createImage } from '#shared/search/index/vault-index.ts'
import { createImages, type Images } from '#shared/search/index/vault-indexes.ts'
import { createQueryVectors, type QueryVectors } from '#shared/search/query/query-vectors.ts'
import { termsOf } from '#shared/search/words/words.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'
import type { Expiry } from '#shared/vault/base/expiry-purger.ts'
import type { RetrievalTrail } from '#shared/vault/read/retrieval-trail.ts'

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

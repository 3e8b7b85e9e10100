import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Config } from '#shared/core/config.ts'
import { createCursorCodec, type CursorCodec } from '#shared/core/cursor.ts'
import { resolveDefaultEmbeddingModel } from '#shared/vault/reembed/default-embedding-model.ts'
import { createEmbedders, type Embedders } from '#shared/models/embedders.ts'
import { createLastUseTracker, type LastUseTracker } from '#shared/access/last-use-tracker.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { createSeal, type Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import { OpenExchanges } from '#shared/vault/ingest/open-exchanges.ts'
import { createRecalledTurns, type RecalledTurns } from '#shared/vault/read/recalled-turns.ts'
import { createExpiryPurger } from '#shared/vault/delete/purge-expired.ts'
import { openMongo, type Mongo } from '#shared/storage/mongo/connect.ts'
import { createMemoryStore, type MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { chooseNearestSearch } from '#shared/vault/read/nearest.mongo.ts'
import { createRetrievalTrail } from '#shared/org/retrieval-trail.ts'
import { createAcceptIngest, type AcceptIngest } from '#shared/vault/ingest/accept.ts'
import { createOperationWaiter, type OperationWaiter } from '#shared/operations/operation-waiter.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { findKeys, type KeyRow } from '#shared/access/memory-keys.postgres.ts'
import { createUsageWriter, type UsageWriter } from '#shared/billing/usage.postgres.ts'
import { createModelCatalog, type ModelCatalog } from '#shared/models/model-catalog.ts'
import { createUpstream, type Upstream } from '#shared/models/upstream.ts'
import { openQueueSender, openQueueWorker, type Queue } from '#shared/storage/queue/queue.ts'
import { invalidateOnClear } from '#shared/vault/read/invalidate-on-clear.ts'
import { createIndexSource } from '#shared/vault/read/index-source.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import {
  createQueryVectorCache,
  type QueryVectorCache,
} from '#shared/search/query/query-vector-cache.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { createWebhookSender, type WebhookSender } from '#shared/events/webhooks/send.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'
import type { RetrievalTrail } from '#shared/vault/read/retrieval-trail.ts'

/** Everything outside the process, and what is made of it; opened once, passed to whoever needs it. */
export type Backend = {
  config: Config
  log: Log
  now: () => number
  seal: Seal
  cursors: CursorCodec
  postgres: Postgres
  mongo: Mongo
  memories: MemoryStore
  nearest: NearestSearch
  queue: Queue
  accept: AcceptIngest
  operationWaiter: OperationWaiter
  expiry: ExpiryPurger
  /** Looks a Memory Key up by its hash; requests that arrive together share a read. */
  findKey: (hash: Buffer) => Promise<KeyRow | undefined>
  lastUsed: LastUseTracker
  usage: UsageWriter
  retrievals: RetrievalTrail
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  /** Model calls under way, whose exchanges are still to be stored. */
  exchanges: OpenExchanges
  /** What those calls were told, for the next calls of the same turns. */
  recalledTurns: RecalledTurns
  /** Which models can be reached. */
  catalog: ModelCatalog
  /** Where model calls go. */
  upstream: Upstream
  webhookSender: WebhookSender
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
export async function openBackend(
  environmentConfig: Config,
  log: Log,
  role: BackendRole,
): Promise<Backend> {
  const postgres = openPostgres(environmentConfig.databaseUrl, {
    max: 10,
    onError: error => log.warn({ err: error }, 'postgres.connection-lost'),
  })
  const { model, modelsInUse } = await resolveDefaultEmbeddingModel(
    postgres,
    environmentConfig,
    role === 'web' ? log : null,
  )
  const config: Config = { ...environmentConfig, embeddingModel: model }
  const mongo = await openMongo(config.mongodbUri)
  const open = role === 'worker' ? openQueueWorker : openQueueSender
  const queue = await open(config.databaseUrl, log)
  const memories = createMemoryStore(mongo)
  const operations = createOperationWaiter(postgres)
  const usage = createUsageWriter(postgres, log)
  const retrievals = createRetrievalTrail({ postgres, mongo }, log)
  const lastUsed = createLastUseTracker(postgres.query, log)
  const clearSubscription = invalidateOnClear(
    createIndexSource({ memories, postgres }),
    postgres,
    vault => images.forget(vault),
  )
  const accept = createAcceptIngest(postgres, queue)
  const embedders = createEmbedders(config, modelsInUse)
  const now = Date.now
  const exchanges = new OpenExchanges({ postgres, accept, embedders, usage, now, log })
  const upstream = createUpstream({
    firstByteMs: config.providerFirstByteMs,
    idleMs: config.providerIdleMs,
  })
  const webhookSender = createWebhookSender({ allowLoopback: config.allowLoopbackWebhooks })
  const images = new VaultIndexes(clearSubscription.source, {
    budgetBytes: config.vaultIndexCacheBytes,
    createIndex: ({ dimension }: { dimension: number }) => createVaultIndex({ dimension, termsOf }),
  })

  return {
    config,
    log,
    now,
    seal: createSeal(config.masterKeys),
    cursors: createCursorCodec(config.keyPepper),
    postgres,
    mongo,
    memories,
    nearest: await chooseNearestSearch(mongo, {
      onScan: ({ space, reason }) => log.warn({ space, reason }, 'search.scanning'),
    }),
    queue,
    accept,
    operationWaiter: operations,
    expiry: createExpiryPurger({ postgres, mongo, queue, log }),
    findKey: batchLoader(
      async hashes => {
        const rows = await findKeys(postgres.query, hashes)
        // An account's own keys are listed nowhere.
        rows.forEach((row, n) => row && row.kind !== 'vault' && lastUsed.touch(hashes[n]!))
        return rows
      },
      { concurrency: 2, batchMax: 200 },
    ),
    lastUsed,
    usage,
    retrievals,
    embedders,
    queryVectors: createQueryVectorCache(),
    vaultIndexes: images,
    exchanges,
    recalledTurns: createRecalledTurns(postgres),
    catalog: createModelCatalog({
      onError: (provider, error) => log.warn({ provider, err: error }, 'models.not-listed'),
    }),
    upstream,
    webhookSender,
    async close() {
      await exchanges.drain(drainMs)
      await queue.close()
      const flushed = Promise.all([usage.flush(), lastUsed.flush(), retrievals.flush()])
      await withTimeout(flushed, flushMs, () => undefined)
      await Promise.all([
        operations.close(),
        clearSubscription.close(),
        upstream.close(),
        webhookSender.close(),
      ])
      await Promise.all([postgres.close(), mongo.close()])
    },
  }
}

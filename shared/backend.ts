import { Breaker } from '#shared/core/breaker.ts'
import type { Config } from '#shared/core/config.ts'
import { CursorCodec } from '#shared/core/page.ts'
import { resolveDefaultEmbeddingModel } from '#shared/vault/reembed/default-embedding-model.ts'
import { Calibrator } from '#shared/models/calibration/calibrate-embedder.ts'
import { createEmbedders, type Embedders } from '#shared/models/embedders.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import { OpenExchanges } from '#shared/vault/ingest/open-exchanges.ts'
import {
  createRecalledTurns,
  type RecalledTurns,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'
import { CallLog } from '#shared/vault/read/traces/call-log.ts'
import { createExpiryPurger } from '#shared/vault/delete/purge-expired.ts'
import { openMongo, type Mongo } from '#shared/storage/mongo/connect.ts'
import { requestSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { chooseNearestSearch } from '#shared/vault/read/search/nearest.mongo.ts'
import { createRecentMemories } from '#shared/vault/read/search/recent-memories.ts'
import { StoredRetrievalTrail } from '#shared/org/trail/retrieval-trail.ts'
import { IngestWriter } from '#shared/vault/ingest/ingest.ts'
import { OperationWaiter } from '#shared/operations/operation-waiter.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { logPooler } from '#shared/storage/postgres/pooler.ts'
import { createKeyAccess, type KeyAccess } from '#shared/access/key-access.ts'
import { UsageWriter } from '#shared/billing/usage-writer.ts'
import { ModelCatalog } from '#shared/models/model-catalog.ts'
import { Prices } from '#shared/models/prices.ts'
import { Upstream } from '#shared/models/upstream.ts'
import type { QueuePace } from '#shared/storage/queue/due-queues.ts'
import { openQueueSender, openQueueWorker } from '#shared/storage/queue/open-queue.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { invalidateOnClear } from '#shared/vault/read/prepare/invalidate-on-clear.ts'
import { ProfileCache } from '#shared/vault/read/prepare/profile-cache.ts'
import { createProfileSource } from '#shared/vault/read/prepare/profile-source.mongo.ts'
import { guardProfiles, guardReads } from '#shared/vault/read/prepare/guarded-reads.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { WebhookSender } from '#shared/events/webhooks/send.ts'
import { webhookPolicy } from '#shared/events/webhooks/ssrf-guard.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-protocol.ts'
import type { RetrievalTrail } from '#shared/vault/read/search/retrieval-trail.ts'

/** Connections to everything outside the process, and what is built on them; opened once per process. */
export type Backend = KeyAccess & {
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
  ingest: IngestWriter
  operationWaiter: OperationWaiter
  expiry: ExpiryPurger
  usage: UsageWriter
  retrievals: RetrievalTrail
  embedders: Embedders
  /** Whether MongoDB answers. */
  storeBreaker: Breaker
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  profiles: ProfileCache
  /** Model calls under way, whose exchanges are still to be stored. */
  exchanges: OpenExchanges
  /** The memories recalled for those calls, for the next calls of the same turns. */
  recalledTurns: RecalledTurns
  /** Writes traces that no answer waits for. */
  callLog: CallLog
  /** Which models can be reached. */
  catalog: ModelCatalog
  /** What model calls cost. */
  prices: Prices
  /** Where model calls go. */
  upstream: Upstream
  webhookSender: WebhookSender
  /** Lets running jobs and unwritten bills finish, then closes every connection. */
  close(): Promise<void>
}

/** Answers that have just been heard are stored before the connections close. */
const drainMs = 3_000
/** Bills of reads that the database will not take any more are given up after this. */
const flushMs = 3_000

/**
 * @param queuePace of a worker, where it is not that of the service
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function openBackend(
  environmentConfig: Config,
  log: Log,
  role: 'web' | 'worker',
  queuePace?: QueuePace,
): Promise<Backend> {
  const stores = await openStores(environmentConfig, log, role, queuePace)
  const { config, postgres, mongo, queue } = stores
  const seal = new Seal(config.masterKeys)
  const keys = createKeyAccess({ postgres, seal }, log)
  const reads = await createReads(stores, log)
  const models = createModels(stores, log)
  const operationWaiter = new OperationWaiter(postgres)
  const usage = new UsageWriter(postgres, log)
  const retrievals = new StoredRetrievalTrail({ postgres, mongo, seal }, log)
  const ingest = new IngestWriter(postgres, queue, config.orgGatherSeconds)
  const now = Date.now
  const { embedders } = models
  queue.held.away = () => [...embedders.away(), ...(reads.storeBreaker.isAway ? ['mongodb'] : [])]
  const callLog = new CallLog(postgres, log)
  const exchanges = new OpenExchanges({ postgres, ingest, usage, now, log })
  const webhookSender = new WebhookSender(webhookPolicy(config))
  const { clearSubscription, ...searched } = reads

  return {
    config,
    log,
    now,
    seal,
    cursors: new CursorCodec(config.keyPepper),
    postgres,
    mongo,
    queue,
    memories: stores.memories,
    ...searched,
    ...keys,
    ...models,
    ingest,
    operationWaiter,
    expiry: createExpiryPurger({ postgres, mongo, queue, log }),
    usage,
    retrievals,
    exchanges,
    recalledTurns: createRecalledTurns(postgres),
    callLog,
    webhookSender,
    async close() {
      reads.storeBreaker.stop()
      embedders.close()
      await exchanges.drain(drainMs)
      await queue.close()
      const flushed = Promise.all([
        usage.flush(),
        keys.lastUsed.flush(),
        retrievals.flush(),
        callLog.settled(),
      ])
      await withTimeout(flushed, flushMs, () => undefined)
      await Promise.all([
        operationWaiter.close(),
        clearSubscription.close(),
        models.upstream.close(),
        webhookSender.close(),
      ])
      await Promise.all([postgres.close(), mongo.close()])
    },
  }
}

type OpenedStores = Pick<Backend, 'config' | 'postgres' | 'mongo' | 'queue' | 'memories'> & {
  /** Embedding models of the vaults that exist. */
  modelsInUse: ReadonlySet<string>
}

/** Connects to the stores; the default embedding model is the one that they were filled with. */
async function openStores(
  config: Config,
  log: Log,
  role: 'web' | 'worker',
  queuePace?: QueuePace,
): Promise<OpenedStores> {
  const postgres = openPostgres(config.databaseUrl, {
    max: 10,
    onError: error => log.warn({ err: error }, 'postgres.connection-lost'),
    onUnnamed: error => log.warn({ err: error }, 'postgres.statements-unnamed'),
  })
  const { model, modelsInUse } = await resolveDefaultEmbeddingModel(
    postgres,
    config,
    role === 'web' ? log : null,
  )
  const mongo = await openMongo(config.mongodbUri)
  const pooler = logPooler(log, await postgres.pooler())
  const open = role === 'worker' ? openQueueWorker : openQueueSender
  const queue = await open(config.databaseUrl, log, { pooler, pace: queuePace })
  return {
    config: { ...config, embeddingModel: model },
    modelsInUse,
    postgres,
    mongo,
    queue,
    memories: new MemoryStore(mongo),
  }
}

/** Creates the parts that find memories, behind the breaker of MongoDB. */
async function createReads({ config, postgres, mongo, memories, queue }: OpenedStores, log: Log) {
  const storeBreaker = new Breaker({
    name: 'mongodb',
    probe: () => mongo.ping(),
    onChange: (...change) => queue.held.onChange('mongodb', ...change),
  })
  const nearest = await chooseNearestSearch(mongo, {
    recent: createRecentMemories({ memories, postgres }),
    onMissing: error => log.info({ err: error }, 'search.no-vector-search'),
    onScan: ({ space, dimension, reason }) => {
      log.warn({ space, reason }, 'search.scanning')
      // A model that only requests name has no index since the release: it is asked for at its first search.
      void requestSearchIndexes(mongo, [{ space, dimension }], { options: config.vectorIndex, log })
    },
  })
  const reads = guardReads(storeBreaker, { memories, nearest })
  const clearSubscription = invalidateOnClear(
    createIndexSource({ memories: reads.memories, postgres, log }),
    postgres,
    vault => {
      vaultIndexes.forget(vault)
      profiles.forget(vault)
    },
  )
  const profiles = new ProfileCache(
    clearSubscription.subscribing(
      guardProfiles(storeBreaker, createProfileSource({ mongo, postgres })),
    ),
  )
  const vaultIndexes = new VaultIndexes(clearSubscription.source, {
    budgetBytes: config.vaultIndexCacheBytes,
    createIndex: options => createVaultIndex({ ...options, termsOf }),
  })
  return { storeBreaker, nearest: reads.nearest, vaultIndexes, profiles, clearSubscription }
}

type Models = Pick<Backend, 'embedders' | 'queryVectors' | 'catalog' | 'prices' | 'upstream'>

function createModels({ config, modelsInUse, postgres, queue }: OpenedStores, log: Log): Models {
  const calibrator = new Calibrator(postgres, log)
  return {
    embedders: createEmbedders(config, modelsInUse, queue.held.onChange, calibrator),
    queryVectors: new QueryVectorCache(),
    catalog: new ModelCatalog((provider, error) =>
      log.warn({ provider, err: error }, 'models.not-listed'),
    ),
    prices: new Prices(config.ownPrices),
    upstream: new Upstream({
      firstByteMs: config.providerFirstByteMs,
      idleMs: config.providerIdleMs,
    }),
  }
}

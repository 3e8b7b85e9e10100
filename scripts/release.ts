import type { Config } from '#shared/core/config.ts'
import {
  resolveDefaultEmbeddingModel,
  type DefaultEmbeddingModel,
} from '#shared/vault/reembed/default-embedding-model.ts'
import { createEmbedders } from '#shared/models/embedders.ts'
import type { Log } from '#shared/core/log.ts'
import { openMongo, type Mongo } from '#shared/storage/mongo/connect.ts'
import { createIndexes } from '#shared/storage/mongo/indexes.ts'
import { requestSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { migrate } from '#shared/storage/postgres/migrate.ts'
import { migrateQueue } from '#shared/storage/queue/migrate-queue.ts'

/**
 * Brings both stores to this version: SQL migrations, the queue's schema and queues, MongoDB indexes,
 * the default embedding model of the database, and the search indexes of every model in use if the
 * deployment has vector search. Idempotent, and safe to run in several processes at once.
 *
 * @returns the names of the migrations that were applied.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function release(config: Config, log: Log): Promise<string[]> {
  const applied = await releasePostgres(config.databaseUrl, log)
  await releaseMongo(config, log)
  return applied
}

/** The part of a release that needs Postgres only: migrations and queues. */
export async function releasePostgres(databaseUrl: string, log: Log): Promise<string[]> {
  const applied = await migrate(databaseUrl)
  await migrateQueue(databaseUrl, log)
  return applied
}

/** The rest of a release, on a migrated database: the default embedding model and MongoDB's indexes. */
export async function releaseMongo(config: Config, log: Log): Promise<void> {
  const { model, modelsInUse } = await resolveModels(config)
  const mongo = await openMongo(config.mongodbUri)
  try {
    await createIndexes(mongo)
    if (await mongo.hasVectorSearch()) {
      const models = new Set([model, ...modelsInUse])
      await createModelSearchIndexes({ ...config, embeddingModel: model }, models, mongo, log)
    } else {
      log.info({}, 'search-index.not-supported')
    }
  } finally {
    await mongo.close()
  }
}

async function resolveModels(config: Config): Promise<DefaultEmbeddingModel> {
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    return await resolveDefaultEmbeddingModel(postgres, config, null)
  } finally {
    await postgres.close()
  }
}

/** An embedding model that does not answer does not fail the release: without its index vaults are scanned. */
async function createModelSearchIndexes(
  config: Config,
  models: ReadonlySet<string>,
  mongo: Mongo,
  log: Log,
): Promise<void> {
  const embedders = createEmbedders(config, models)
  for (const model of models) {
    try {
      const { space, dimension } = await embedders.get(model)
      const options = { options: config.vectorIndex, log }
      await requestSearchIndexes(mongo, [{ space, dimension }], options)
    } catch (error) {
      log.warn({ err: error, model }, 'search-index.missing')
    }
  }
}

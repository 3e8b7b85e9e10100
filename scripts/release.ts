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
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { migrate } from '#shared/storage/postgres/migrate.ts'
import { migrateQueue } from '#shared/storage/queue/boss.ts'

/**
 * Brings both stores to this version: SQL migrations, the queue's schema and queues, MongoDB indexes,
 * the default embedding model of the database, and the search indexes of every model in use if the
 * deployment has vector search. Idempotent, and safe to run in several processes at once.
 *
 * @returns the names of the migrations that were applied, and a line about the stores for a report of a fault.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function release(
  config: Config,
  log: Log,
): Promise<{ applied: string[]; found: string }> {
  const applied = await releasePostgres(config.databaseUrl, log)
  return { applied, found: await releaseMongo(config, log) }
}

/** The part of a release that needs Postgres only: migrations and queues. */
export async function releasePostgres(databaseUrl: string, log: Log): Promise<string[]> {
  const applied = await migrate(databaseUrl)
  await migrateQueue(databaseUrl, log)
  return applied
}

/**
 * The rest of a release, on a migrated database: the default embedding model and MongoDB's indexes.
 *
 * @returns what was found, as `release`
 */
export async function releaseMongo(config: Config, log: Log): Promise<string> {
  const { model, modelsInUse, server } = await resolveModels(config)
  const mongo = await openMongo(config.mongodbUri)
  try {
    await createIndexes(mongo)
    const hasSearch = await mongo.hasVectorSearch()
    if (hasSearch) {
      const models = new Set([model, ...modelsInUse])
      await createModelSearchIndexes({ ...config, embeddingModel: model }, models, mongo, log)
    } else {
      log.info({}, 'search-index.not-supported')
    }
    const search = hasSearch ? 'with search indexes' : 'without search indexes'
    return `Found ${server}, MongoDB ${await mongo.version()} ${search}, embedding model ${model}`
  } finally {
    await mongo.close()
  }
}

async function resolveModels(config: Config): Promise<DefaultEmbeddingModel & { server: string }> {
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    return {
      ...(await resolveDefaultEmbeddingModel(postgres, config, null)),
      server: await describeServer(postgres),
    }
  } finally {
    await postgres.close()
  }
}

async function describeServer({ query, pooler }: Postgres): Promise<string> {
  const { rows } = await query<{ version: string }>(
    `select current_setting('server_version') as version`,
  )
  const between = await pooler()
  const mode = between === 'none' ? 'directly' : `through a pooler in ${between} mode`
  return `PostgreSQL ${rows[0]!.version} ${mode}`
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

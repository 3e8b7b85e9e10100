import { MongoClient } from 'mongodb'
import type { Test } from 'tap'
import { releaseMongo } from '#scripts/release.ts'
import type { Backend } from '#shared/backend.ts'
import type { Config } from '#shared/core/config.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { withConnectDeadlines } from '#test/setup/connect-deadlines.ts'
import { buildKey, startTestApi, type TestClient } from '#test/support/start/api.ts'
import type { AtlasDouble } from '#test/support/doubles/atlas-double.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startMongoDouble, type MongoDouble } from '#test/support/doubles/mongo-double.ts'
import { createSearchDouble } from '#test/support/doubles/search-double.ts'

type LoggedEvent = { level: string; event: string; entry: unknown }

export type SearchDeployment = {
  config: Config
  backend: Backend
  key: string
  api: TestClient
  double: MongoDouble
  search: AtlasDouble
  /** Runs the release step again. @returns what it logged. */
  release(): Promise<LoggedEvent[]>
  /** The index has what was stored so far, and the change log calls none of it new. */
  settle(): Promise<void>
}

/** A service on a deployment with vector search: the engine, behind a double that has the search process. */
export async function openSearchDeployment(
  t: Test,
  env: Record<string, string> = {},
): Promise<SearchDeployment> {
  const real = await createTestConfig(t, env)
  const mongo = await openMongo(real.mongodbUri)
  const client = await MongoClient.connect(real.mongodbUri)
  t.teardown(() => Promise.all([client.close(), mongo.close()]))
  const search = createSearchDouble(mongo, client.db())
  const double = await startMongoDouble(t, { engine: real.mongodbUri, rule: search.rule })
  const config = { ...real, mongodbUri: withConnectDeadlines(double.url) }
  const release = async (): Promise<LoggedEvent[]> => {
    const logged: LoggedEvent[] = []
    const record = (level: string) => (entry: unknown, event: string) =>
      void logged.push({ level, event, entry })
    await releaseMongo(config, { info: record('info'), warn: record('warn') } as never)
    return logged
  }
  await release()
  search.finishBuilds()
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  return {
    config,
    backend,
    key,
    api: await startTestApi(t, backend, key),
    double,
    search,
    release,
    async settle() {
      await search.syncIndexes()
      await backend.postgres.query(`update vault_changes set at = at - interval '1 hour'`)
    },
  }
}

/** The commands with a `$vectorSearch`. */
export const vectorSearches = ({ commands }: Pick<MongoDouble, 'commands'>): unknown[] =>
  commands.filter(command => JSON.stringify(command['pipeline'] ?? '').includes('$vectorSearch'))

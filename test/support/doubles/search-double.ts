import { BSON, MongoServerError, type Db, type Document } from 'mongodb'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { createAtlasDouble, type AtlasDouble } from '#test/support/doubles/atlas-double.ts'
import type { CommandRule } from '#test/support/doubles/mongo-double.ts'

/**
 * Vector search over the wire, for a double in front of an engine that has none: what the search process
 * would answer to a command; undefined for every other command.
 *
 * @param mongo the engine itself
 */
export function createSearchDouble(
  mongo: Mongo,
  database: Db,
): AtlasDouble & { rule: CommandRule } {
  const atlas = createAtlasDouble(mongo, database)
  const { memories } = atlas.mongo
  return Object.assign(atlas, {
    async rule(name: string, command: Document) {
      const ns = `${command['$db']}.${memories.collectionName}`
      try {
        if (name === 'createSearchIndexes') {
          for (const index of command['indexes']) await memories.createSearchIndex(index)
          return { ok: 1, indexesCreated: command['indexes'] }
        }
        const pipeline: Document[] = command['pipeline'] ?? []
        if (name !== 'aggregate' || !isSearch(pipeline)) return undefined
        const firstBatch = await memories.aggregate(pipeline).toArray()
        return { ok: 1, cursor: { id: BSON.Long.ZERO, ns, firstBatch } }
      } catch (error) {
        if (!(error instanceof MongoServerError)) throw error
        return { ok: 0, code: error.code, errmsg: error.message }
      }
    },
  })
}

const isSearch = ([first = {}]: Document[]): boolean =>
  '$vectorSearch' in first || '$listSearchIndexes' in first

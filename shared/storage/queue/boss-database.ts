import { createHash } from 'node:crypto'
import { insertJsonBytes, type JsonBytes } from '#shared/core/canonical-json.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** A transaction as pg-boss takes a database. */
export const toBossDatabase = ({ query }: Transaction) => ({
  executeSql: (text: string, values: unknown[] = []) => query(text, values),
})

/**
 * The database of inserts. pg-boss has one statement for each queue; prepared, it costs Postgres much less
 * time (`shared/DECISIONS.md`): most of it is planning.
 *
 * @param written fields of jobs that pg-boss has not to write as JSON
 */
export const toInsertDatabase = ({ query }: Transaction, written: readonly JsonBytes[]) => ({
  executeSql: (text: string, values: unknown[] = []) => {
    const [jobs, ...others] = values
    const isInsert = written.length > 0 && typeof jobs === 'string'
    const given = isInsert ? [insertJsonBytes(jobs, written), ...others] : values
    return query(text, given, insertNameOf(text))
  },
})

const insertNames = new Map<string, string>()

/** One name for one text in all processes, since a connection pooler may share its statements. */
function insertNameOf(text: string): string {
  const known = insertNames.get(text)
  if (known) return known
  const digest = createHash('sha256').update(text).digest('hex')
  const name = `queue.insert:${digest.slice(0, 12)}`
  insertNames.set(text, name)
  return name
}

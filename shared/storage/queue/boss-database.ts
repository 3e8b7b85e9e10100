import { createHash } from 'node:crypto'
import type { PgBoss } from 'pg-boss'
import { insertJsonBytes, type JsonBytes } from '#shared/core/canonical-json.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { isLostStatement } from '#shared/storage/postgres/server-errors.ts'

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
    return query(text, given, nameOf('queue.insert', text))
  },
})

/**
 * Has pg-boss prepare the statements that take jobs, one for each queue: planning one takes longer than running it, and
 * a worker takes jobs as often as they come. After a full batch the next one is planned: a plan made for a queue with
 * few jobs reads all that wait.
 *
 * @param boss not started
 */
export function prepareFetches(boss: PgBoss): void {
  const db = boss.getDb()
  const executeSql = db.executeSql.bind(db)
  /** Of queues whose last batch was full. */
  const full = new Set<string>()
  let isNamed = true
  db.executeSql = async (text, values) => {
    const limit = isNamed && /^\s*with\s+next as [^;]*\slimit (\d+)/i.exec(text)?.[1]
    if (!limit) return executeSql(text, values)
    const named = { name: nameOf('queue.fetch', text), text, values }
    // pg-boss hands the text on to the driver, which takes a statement with a name as well.
    const fetched = full.has(text) ? executeSql(text, values) : executeSql(named as never)
    const result = await fetched.catch((error: unknown) => {
      if (!isLostStatement(error)) throw error
      isNamed = false
      return executeSql(text, values)
    })
    if (result.rows.length < Number(limit)) full.delete(text)
    else full.add(text)
    return result
  }
}

const names = new Map<string, string>()

/** One name for one text in all processes, since a connection pooler may share its statements. */
function nameOf(kind: string, text: string): string {
  const known = names.get(text)
  if (known) return known
  const digest = createHash('sha256').update(text).digest('hex')
  const name = `${kind}:${digest.slice(0, 12)}`
  names.set(text, name)
  return name
}

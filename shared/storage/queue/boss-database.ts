import { createHash } from 'node:crypto'
import type { PgBoss } from 'pg-boss'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { isLostStatement } from '#shared/storage/postgres/server-errors.ts'

/** A transaction as pg-boss takes a database. */
export const toBossDatabase = ({ query }: Transaction) => ({
  executeSql: (text: string, values: unknown[] = []) => query(text, values),
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
  /** Names of queues whose last batch was full. */
  const full = new Set<string>()
  let isNamed = true
  db.executeSql = async (text, values) => {
    const limit = isNamed && /^\s*with\s+next as [^;]*\slimit (\d+)/i.exec(text)?.[1]
    if (!limit) return executeSql(text, values)
    const named = { name: nameOf(text), text, values }
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
function nameOf(text: string): string {
  const known = names.get(text)
  if (known) return known
  const digest = createHash('sha256').update(text).digest('hex')
  const name = `queue.fetch:${digest.slice(0, 12)}`
  names.set(text, name)
  return name
}

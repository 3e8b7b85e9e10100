import { Refusal } from '#shared/core/errors.ts'
import type { OpenTransaction, Postgres } from '#shared/storage/postgres/connect.ts'

export type GroupCommit<Item, Result> = (item: Item) => Promise<Result>

/**
 * Requests that arrive while a transaction is running share the next one: each waits for its own
 * commit, but the cost of a commit (begin, sync, commit) is paid once per group. A request that
 * arrives alone does not wait.
 *
 * When a group fails, its items run again one by one, so that one bad item harms no other; when the
 * database is out of reach, all of them fail with that error.
 *
 * @param run writes all items in the given transaction; results in the order of the items.
 */
export function groupCommit<Item, Result>(
  postgres: Postgres,
  run: (tx: OpenTransaction, items: Item[]) => Promise<Result[]>,
  { concurrency, batchMax }: { concurrency: number; batchMax: number },
): GroupCommit<Item, Result> {
  type Waiting = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }
  const queue: Waiting[] = []
  let busy = 0

  const commit = async (group: Waiting[]): Promise<void> => {
    try {
      const items = group.map(({ item }) => item)
      const results = await postgres.transaction(tx => run(tx, items))
      group.forEach(({ resolve }, index) => resolve(results[index]!))
    } catch (error) {
      // One by one, the last item would wait for every deadline before it.
      const isUnreachable = error instanceof Refusal && error.reason === 'unavailable'
      if (group.length === 1 || isUnreachable) return group.forEach(({ reject }) => reject(error))
      for (const one of group) await commit([one])
    }
  }

  const commitWaiting = async (): Promise<void> => {
    if (busy >= concurrency) return
    busy++
    try {
      while (queue.length > 0) await commit(queue.splice(0, batchMax))
    } finally {
      busy--
    }
  }

  return item =>
    new Promise<Result>((resolve, reject) => {
      queue.push({ item, resolve, reject })
      void commitWaiting()
    })
}

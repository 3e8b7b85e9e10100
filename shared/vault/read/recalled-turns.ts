import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  saveRecalledTurns,
  findRecalledTurns,
  type RecalledTurn,
  type TurnKey,
} from '#shared/vault/read/recalled-turns.postgres.ts'

/** What was recalled when the current turns began, shared by all processes. */
export type RecalledTurns = {
  /**
   * Undefined when none is stored, or it is older than an hour.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  find(key: TurnKey): Promise<RecalledTurn | undefined>
  /** Stores it for an hour, in place of an earlier one. @throws like `find`. */
  save(key: TurnKey, recalled: RecalledTurn): Promise<void>
}

/** Concurrent calls share a statement. */
export function createRecalledTurns({ query }: Pick<Postgres, 'query'>): RecalledTurns {
  const save = batchLoader(
    async (turns: (TurnKey & RecalledTurn)[]) => {
      await saveRecalledTurns(query, turns)
      return turns
    },
    { concurrency: 1, batchMax: 100 },
  )
  return {
    find: batchLoader(keys => findRecalledTurns(query, keys), { concurrency: 2, batchMax: 100 }),
    async save(key, recalled) {
      await save({ ...key, ...recalled })
    },
  }
}

import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  saveRecalledTurns,
  findRecalledTurns,
  type RecalledTurn,
  type TurnKey,
} from '#shared/vault/read/recalled-turns.postgres.ts'

/** What models were told when turns under way began; every process knows it. */
export type RecalledTurns = {
  /**
   * Undefined when nothing is kept, or not any more.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  find(key: TurnKey): Promise<RecalledTurn | undefined>
  /** Keeps it for an hour, in place of what was kept. @throws like `of`. */
  save(key: TurnKey, recalled: RecalledTurn): Promise<void>
}

/** Calls that come together share a statement. */
export function createRecalledTurns({ query }: Pick<Postgres, 'query'>): RecalledTurns {
  const keep = batchLoader(
    async (turns: (TurnKey & RecalledTurn)[]) => {
      await saveRecalledTurns(query, turns)
      return turns
    },
    { lanes: 1, questionsMax: 100 },
  )
  return {
    find: batchLoader(keys => findRecalledTurns(query, keys), { lanes: 2, questionsMax: 100 }),
    async save(key, recalled) {
      await keep({ ...key, ...recalled })
    },
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { NewCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import {
  saveRecalledTurns,
  findRecalledTurns,
  type RecalledTurn,
  type StoredTurn,
  type TurnKey,
} from '#shared/vault/read/traces/recalled-turns.postgres.ts'

/** What was recalled when the current turns began, shared by all processes. */
export type RecalledTurns = {
  /**
   * Undefined when none is stored, or it is older than 70 minutes.
   *
   * @throws Refusal `unavailable` when the database is out of reach.
   */
  find(key: TurnKey): Promise<StoredTurn | undefined>
  /** Stores it for 70 minutes, in place of an earlier one. @throws like `find`. */
  save(key: TurnKey, recalled: RecalledTurn): Promise<void>
  /**
   * Stores the trace of a call, with the turns that are saved in the same moment.
   *
   * @param build is called once the moment is over
   */
  saveTrace(build: () => Promise<NewCallTrace>): Promise<void>
}

type Save = (TurnKey & RecalledTurn) | { build: () => Promise<NewCallTrace> }

/** Concurrent calls share a statement. */
export function createRecalledTurns({ query }: Pick<Postgres, 'query'>): RecalledTurns {
  const save = batchLoader(
    async (saves: Save[]) => {
      const turns = saves.flatMap(one => ('turn' in one ? [one] : []))
      const builds = saves.flatMap(one => ('build' in one ? [one.build()] : []))
      await saveRecalledTurns(query, turns, await Promise.all(builds))
      return saves
    },
    { concurrency: 1, batchMax: 100, gather: () => nextTurn() },
  )
  return {
    find: batchLoader(keys => findRecalledTurns(query, keys), { concurrency: 2, batchMax: 100 }),
    async save(key, recalled) {
      await save({ ...key, ...recalled })
    },
    async saveTrace(build) {
      await save({ build })
    },
  }
}

import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import type { RecalledLine } from '#shared/vault/read/prepare/choose-lines.ts'
import {
  insertTracesSql,
  toTraceRows,
  type NewCallTrace,
} from '#shared/vault/read/traces/call-traces.postgres.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'
import { setImmediate as pause } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'

/** A turn of a user in a vault. */
export type TurnKey = { vault: string; turn: Buffer }

/** The memories that were put into the prompt when a turn began. */
export type RecalledTurn = {
  /** Ids of memories; null when recall failed. */
  memories: string[] | null
  /** Epoch milliseconds; the ages of the memories in the block are relative to it. */
  at: number
  /** How many parts of the message precede the block. */
  blockIndex: number
  /** Those that are not whole or are marked. */
  lines: RecalledLine[]
  /** The digest of the block's bytes; null where there is no block. */
  digest: Buffer | null
  /** Whether the last request of the turn lacked a block that the one before it had. */
  isPartial: boolean
}

/** A turn as it is found. */
export type StoredTurn = RecalledTurn & {
  /** Whether it should be saved again, so that it lasts as long as the conversation goes on. */
  isAging: boolean
}

/** Turns that a conversation still holds are saved again after so long. */
const agingSeconds = 600
/** As long as providers keep prompts in their caches, from the last request on; a longer turn recalls again. */
const recalledTurnSeconds = 3_600 + agingSeconds

/** @returns one entry per key, in order; undefined where none is stored. */
export async function findRecalledTurns(
  query: Query,
  keys: readonly TurnKey[],
): Promise<(StoredTurn | undefined)[]> {
  const { rows } = await query<StoredTurn | Record<keyof StoredTurn, null>>(
    `select r.memories, r.at, r.place as "blockIndex", r.lines, r.digest, r.is_partial as "isPartial",
       r.kept_at < now() - make_interval(secs => $4) as "isAging"
     from unnest($1::uuid[], $2::bytea[]) with ordinality as asked(vault, turn, n)
     left join recalled_turns r on r.vault = asked.vault and r.turn = asked.turn
       and r.kept_at > now() - make_interval(secs => $3)
     where asked.vault is not null order by asked.n`,
    [
      padArray(keys.map(({ vault }) => vault)),
      padArray(keys.map(({ turn }) => turn)),
      recalledTurnSeconds,
      agingSeconds,
    ],
    'recalled-turns.read',
  )
  return rows.map(row => (row.at === null ? undefined : row))
}

/** Inserts or replaces recalled turns, and traces of calls, in one statement; of duplicates the last counts. */
export async function saveRecalledTurns(
  query: Query,
  turns: readonly (TurnKey & RecalledTurn)[],
  traces: readonly NewCallTrace[] = [],
): Promise<void> {
  const last = new Map(
    turns.map(({ turn, ...row }) => {
      const hex = turn.toString('hex')
      return [`${row.vault} ${hex}`, { ...row, turn: hex, digest: row.digest?.toString('hex') }]
    }),
  )
  await query(
    `with traced as (${insertTracesSql('$2')})
     insert into recalled_turns (vault, turn, memories, at, place, lines, digest, is_partial)
     select i.vault, decode(i.turn, 'hex'), i.memories, i.at, i."blockIndex", i.lines,
       decode(i.digest, 'hex'), i."isPartial"
     from jsonb_to_recordset($1::jsonb) as i(
       vault uuid, turn text, memories uuid[], at bigint, "blockIndex" integer, lines jsonb, digest text,
       "isPartial" boolean)
     -- In one order, so that two statements never wait for each other.
     order by i.vault, i.turn
     on conflict (vault, turn) do update
       set memories = excluded.memories, at = excluded.at, place = excluded.place,
         lines = excluded.lines, digest = excluded.digest, is_partial = excluded.is_partial,
         kept_at = now()`,
    [JSON.stringify([...last.values()]), toTraceRows(traces)],
    'recalled-turns.keep',
  )
}

/** Deletes turns that no request was sent with for an hour. @returns how many. */
export async function dropOldRecalledTurns(query: Query): Promise<number> {
  const { rowCount } = await query(
    'delete from recalled_turns where kept_at < now() - make_interval(secs => $1)',
    [recalledTurnSeconds],
    'recalled-turns.drop-old',
  )
  return rowCount
}

/** What was recalled when the current turns began, shared by all processes. */
export type RecalledTurns = {
  /** Undefined when none is stored, or it is older than 70 minutes. @throws Refusal `unavailable`. */
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

/** Concurrent calls share a statement. */
export function createRecalledTurns({ query }: Pick<Postgres, 'query'>): RecalledTurns {
  const save = batchLoader(
    async (saves: ((TurnKey & RecalledTurn) | { build: () => Promise<NewCallTrace> })[]) => {
      const turns = saves.flatMap(one => ('turn' in one ? [one] : []))
      const builds = saves.flatMap(one => ('build' in one ? [one.build()] : []))
      await saveRecalledTurns(query, turns, await Promise.all(builds))
      return saves
    },
    { concurrency: 1, batchMax: 100, gather: () => pause() },
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

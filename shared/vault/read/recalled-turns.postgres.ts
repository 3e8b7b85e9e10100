import type { Query } from '#shared/storage/postgres/connect.ts'

/** A turn of a user in a vault. */
export type TurnKey = { vault: string; turn: Buffer }

/** The memories that were put into the prompt when a turn began. */
export type RecalledTurn = {
  /** Ids of memories; null when recall failed. */
  memories: string[] | null
  /** Epoch milliseconds; the ages of the memories in the block are relative to it. */
  at: number
  /** How many parts of the message precede the block. */
  place: number
}

/** As long as providers keep prompts in their caches; a longer turn recalls again. */
const recalledTurnSeconds = 3_600

/** @returns one entry per key, in order; undefined where none is stored. */
export async function findRecalledTurns(
  query: Query,
  keys: readonly TurnKey[],
): Promise<(RecalledTurn | undefined)[]> {
  const { rows } = await query<Omit<RecalledTurn, 'at'> & { at: string | null }>(
    `select r.memories, r.at, r.place
     from unnest($1::uuid[], $2::bytea[]) with ordinality as asked(vault, turn, n)
     left join recalled_turns r on r.vault = asked.vault and r.turn = asked.turn
       and r.kept_at > now() - make_interval(secs => $3)
     order by asked.n`,
    [keys.map(({ vault }) => vault), keys.map(({ turn }) => turn), recalledTurnSeconds],
    'recalled-turns.read',
  )
  return rows.map(({ at, ...row }) => (at === null ? undefined : { ...row, at: Number(at) }))
}

/** Inserts or replaces recalled turns; of a turn that is given twice, the last counts. */
export async function saveRecalledTurns(
  query: Query,
  turns: readonly (TurnKey & RecalledTurn)[],
): Promise<void> {
  const last = new Map(
    turns.map(({ turn, ...row }) => {
      const hex = turn.toString('hex')
      return [`${row.vault} ${hex}`, { ...row, turn: hex }]
    }),
  )
  await query(
    `insert into recalled_turns (vault, turn, memories, at, place)
     select i.vault, decode(i.turn, 'hex'), i.memories, i.at, i.place
     from jsonb_to_recordset($1::jsonb) as i(
       vault uuid, turn text, memories uuid[], at bigint, place integer)
     -- In one order, so that two statements never wait for each other.
     order by i.vault, i.turn
     on conflict (vault, turn) do update
       set memories = excluded.memories, at = excluded.at, place = excluded.place, kept_at = now()`,
    [JSON.stringify([...last.values()])],
    'recalled-turns.keep',
  )
}

/** Deletes turns that are older than an hour. @returns how many. */
export async function dropOldRecalledTurns(query: Query): Promise<number> {
  const { rowCount } = await query(
    'delete from recalled_turns where kept_at < now() - make_interval(secs => $1)',
    [recalledTurnSeconds],
    'recalled-turns.drop-old',
  )
  return rowCount
}

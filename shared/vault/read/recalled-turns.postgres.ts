import type { Query } from '#shared/storage/postgres/connect.ts'

/** A turn of a user in a vault. */
export type TurnKey = { vault: string; turn: Buffer }

/** What a model was told when a turn began. */
export type RecalledTurn = {
  /** The memories; null when they could not be asked. */
  memories: string[] | null
  /** Epoch milliseconds from which their ages were told. */
  at: number
  /** How many parts of the message stand before the block. */
  place: number
}

/** As long as providers keep what they have cached; a longer turn is told anew. */
const recalledTurnSeconds = 3_600

/** @returns in the order of the keys; undefined where nothing is kept. */
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

/** Keeps what was told in place of what was kept; of one turn given twice, the last counts. */
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
     -- In one order, so that none of two that write at once waits for the other.
     order by i.vault, i.turn
     on conflict (vault, turn) do update
       set memories = excluded.memories, at = excluded.at, place = excluded.place, kept_at = now()`,
    [JSON.stringify([...last.values()])],
    'recalled-turns.keep',
  )
}

/** Forgets turns that are over. @returns how many. */
export async function dropOldRecalledTurns(query: Query): Promise<number> {
  const { rowCount } = await query(
    'delete from recalled_turns where kept_at < now() - make_interval(secs => $1)',
    [recalledTurnSeconds],
    'recalled-turns.drop-old',
  )
  return rowCount
}

import type { Query } from '#shared/storage/postgres/connect.ts'

/** Turns that are sent again before another turn are known for this long. */
const keptSeconds = 86_400

/** Records that the turns of these exchanges were not answered. Call it before they are closed. */
export async function saveUnansweredTurns(
  query: Query,
  operations: readonly string[],
): Promise<void> {
  await query(
    `insert into unanswered_turns (vault, turn, epoch, session_epoch)
     select distinct on (vault, turn) vault, turn, epoch, session_epoch from open_exchanges
     where operation = any($1::uuid[]) and turn is not null and not step
     order by vault, turn, operation desc
     on conflict (vault, turn) do update
       set epoch = excluded.epoch, session_epoch = excluded.session_epoch, ended_at = now(),
           answered = false`,
    [operations],
    'open-exchanges.keep-unanswered',
  )
}

/** Deletes turns older than `keptSeconds`. @returns how many. */
export async function dropOldUnansweredTurns(query: Query): Promise<number> {
  const { rowCount } = await query(
    'delete from unanswered_turns where ended_at < now() - make_interval(secs => $1)',
    [keptSeconds],
    'open-exchanges.drop-unanswered',
  )
  return rowCount
}

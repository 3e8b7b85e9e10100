import type { Turn } from '#shared/domain/message-content.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** A turn without another call for this long has ended; its last step is stored. */
const stepSeconds = 3_600

/**
 * Keeps the text of a step of a turn, in place of that of an earlier step. It is an open exchange which
 * nobody renews: the sweep for abandoned exchanges stores it.
 *
 * @param step.operation the id under which it would be stored
 * @param step.call the operation of the call that it is the reply of; without its row nothing is kept
 */
export async function saveStep(
  query: Query,
  {
    vault,
    turn,
    operation,
    call,
    said,
  }: {
    vault: string
    turn: Buffer

    operation: string
    call: string
    said: readonly Turn[]
  },
): Promise<void> {
  await query(
    `with former as (
       delete from open_exchanges where vault = $1 and turn = $2 and step and operation <> $3
     )
     insert into open_exchanges (operation, account, vault, key_hash, session, epoch, session_epoch,
                                 embeddings, model, user_turn, turn, expires_at, shares, metadata, step,
                                 renewed_at)
     select $3, account, vault, key_hash, session, epoch, session_epoch, embeddings, model, $5::jsonb, $2,
            expires_at, shares, metadata, true, now() + make_interval(secs => $6)
     from open_exchanges where operation = $4
     on conflict (operation) do nothing`,
    [vault, turn, operation, call, JSON.stringify(said), stepSeconds],
    'open-exchanges.save-step',
  )
}

/** Deletes the kept step of a turn that was answered. */
export async function dropSteps(query: Query, vault: string, turn: Buffer): Promise<void> {
  await query(
    'delete from open_exchanges where vault = $1 and turn = $2 and step',
    [vault, turn],
    'open-exchanges.drop-steps',
  )
}

/**
 * Ends turns that another turn follows: their kept steps are stored with the next sweep.
 *
 * @returns of the turns given, those whose messages are stored or will be.
 */
export async function endTurns(
  query: Query,
  { vault, turns }: { vault: string; turns: readonly Buffer[] },
): Promise<Buffer[]> {
  const { rows } = await query<{ turn: Buffer }>(
    `with ended as (
       update open_exchanges set renewed_at = '-infinity'
       where vault = $1 and turn = any($2::bytea[]) and step
     )
     select turn from unanswered_turns where vault = $1 and turn = any($2::bytea[])
     union
     select turn from open_exchanges where vault = $1 and turn = any($2::bytea[]) and not step`,
    [vault, turns],
    'open-exchanges.end-turns',
  )
  return rows.map(({ turn }) => turn)
}

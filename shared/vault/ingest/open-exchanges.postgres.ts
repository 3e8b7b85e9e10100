import { insertJsonBytes, JsonBytes } from '#shared/core/canonical-json.ts'
import type { Turn } from '#shared/domain/message-content.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import type { OpenExchange } from '#shared/vault/ingest/exchange.ts'

/** A row of `open_exchanges`: a model call under way. */
export type ExchangeRow = Omit<OpenExchange, 'owner' | 'userTurns' | 'storesReply' | 'verbatim'> & {
  account: string
  vault: string
  keyHash: Buffer
  /** The user's turns, stored with or without an answer. Large ones were written as JSON before. */
  userTurns: Turn[] | JsonBytes
  /** Hash of the words of the turn, whatever the history; left out for turns without words. */
  words?: Buffer | undefined
}

/** An unanswered turn that is sent again later than this counts as a new turn. */
const unansweredSeconds = 600

/**
 * Writes rows in one statement; an existing one, of a request sent again, is renewed.
 *
 * A turn whose last call is under way or was not answered is written with that call only, unless it was cleared,
 * or a memory of the vault was deleted since. A continuation is written if no call of the last day had its
 * words: `unanswered_turns` has a row for them, too.
 *
 * @param answered answered calls that are being stored: the same turn sent again is a new turn
 * @returns for each row whether its turns were written with an earlier call.
 */
export async function insertOpenExchanges(
  query: Query,
  rows: readonly ExchangeRow[],
  answered: readonly string[] = [],
): Promise<boolean[]> {
  const items = rows.map(({ keyHash, turn, words, expiresAt, shares = true, ...row }) => ({
    ...row,
    shares,
    words: words?.toString('hex') ?? null,
    expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    key_hash: keyHash.toString('hex'),
    turn: turn?.toString('hex') ?? null,
  }))
  const jsonTurns = rows.flatMap(({ userTurns }) =>
    userTurns instanceof JsonBytes ? [userTurns] : [],
  )
  const { rows: inserted } = await query<{ operation: string; empty: boolean }>(
    `with asked as (
       -- The rows, with the epochs of vault and session; nth: the same turn in several rows of this statement.
       select i.operation, i.account, i.vault, decode(i.key_hash, 'hex') as key_hash, i.session,
              v.epoch, coalesce((select s.epoch from sessions s where s.vault = i.vault
                                 and s.session = i.session), 0) as session_epoch, i.embeddings, i.model, i."userTurns" as user_turn, i.expires_at, i.shares, i.metadata,
              decode(i.turn, 'hex') as turn, decode(i.words, 'hex') as words,
              coalesce(i."isContinuation", false) as continues,
              row_number() over (partition by i.vault, i.turn order by i.operation) as nth
       from json_to_recordset($1::json) as i(
         operation uuid, account uuid, vault uuid, key_hash text, session text, embeddings text, model text, "userTurns" jsonb,
         turn text, words text, "isContinuation" boolean, expires_at timestamptz, shares boolean, metadata jsonb)
       join vaults v on v.id = i.vault and v.id = any($4::uuid[])
     ), held as (
       -- What unanswered_turns has of these turns, locked in one order.
       select u.vault, u.turn, u.epoch, u.session_epoch, u.ended_at, u.answered
       from unanswered_turns u join asked a on a.vault = u.vault and a.turn = u.turn and a.nth = 1
       order by u.vault, u.turn for update of u
     ), taken as (
       -- Such a row ends: the call under way stands for its turn now.
       delete from unanswered_turns u using held h where u.vault = h.vault and u.turn = h.turn
     ), seen as (
       -- The words of each row, kept for a day, by which a continuation finds its beginning.
       insert into unanswered_turns (vault, turn, epoch, session_epoch, answered)
       select distinct on (vault, words) vault, words, epoch, session_epoch, true from asked
       where words is not null order by vault, words
       on conflict (vault, turn) do update set ended_at = now()
     ), already_stored as (
       -- Rows whose turn another call stores: a second row of this statement;
       select a.operation from asked a where a.nth > 1 and a.turn is not null
       union
       -- a continuation without words, or with words that were seen before (the table is read as it was before seen);
       select a.operation from asked a
       where a.continues and (a.words is null or
         (select true from unanswered_turns u where u.vault = a.vault and u.turn = a.words))
       union
       -- a turn sent again soon after it ended unanswered;
       select a.operation from asked a
       join held h using (vault, turn, epoch, session_epoch)
       where not h.answered and h.ended_at > now() - make_interval(secs => $2)
         and not exists (select from vault_changes c where c.vault = h.vault
                         and c.removed <> '{}' and c.at >= h.ended_at)
       union
       -- a turn with another open exchange, which is not among those that are being stored.
       select a.operation from asked a
       join open_exchanges o using (vault, turn, epoch, session_epoch)
       where o.vault = any($4::uuid[]) and o.turn = any($5::bytea[])
         and o.operation <> a.operation and o.operation <> all($3::uuid[]) and not o.step
     )
     insert into open_exchanges (operation, account, vault, key_hash, session, epoch, session_epoch,
                                 embeddings, model, user_turn, turn, expires_at, shares, metadata)
     select a.operation, a.account, a.vault, a.key_hash, a.session, a.epoch, a.session_epoch,
            a.embeddings, a.model, case when w.operation is null then a.user_turn else '[]' end, a.turn,
            a.expires_at, a.shares, a.metadata
     from asked a left join already_stored w using (operation)
     on conflict (operation) do update set renewed_at = now()
     returning operation, user_turn = '[]' as empty`,
    [
      insertJsonBytes(JSON.stringify(items), jsonTurns),
      unansweredSeconds,
      answered,
      // Postgres takes the rows for a hundred: for so many it would read whole tables.
      padArray(rows.map(({ vault }) => vault)),
      padArray(rows.flatMap(({ turn }) => turn ?? [])),
    ],
    'open-exchanges.insert',
  )
  const empty = new Map(inserted.map(row => [row.operation, row.empty]))
  return rows.map(
    ({ operation, userTurns }) =>
      (userTurns instanceof JsonBytes || userTurns.length > 0) && empty.get(operation) === true,
  )
}

/** Records that exchanges are still under way, or were tried just now: sweeps take others first. */
export async function renewOpenExchanges(
  query: Query,
  operations: readonly string[],
): Promise<void> {
  await query(
    'update open_exchanges set renewed_at = now() where operation = any($1::uuid[])',
    [operations],
    'open-exchanges.renew',
  )
}

/** Deletes exchanges of which nothing is stored. */
export async function dropOpenExchanges(query: Query, operations: string[]): Promise<void> {
  await query(
    'delete from open_exchanges where operation = any($1::uuid[])',
    [operations],
    'open-exchanges.drop',
  )
}

/** Exchanges not renewed for `seconds`, oldest first. */
export async function listAbandonedExchanges(
  query: Query,
  { seconds, limit }: { seconds: number; limit: number },
): Promise<(ExchangeRow & { userTurns: Turn[] })[]> {
  type Row = ExchangeRow & { userTurns: Turn[]; end: Date | null }
  const { rows } = await query<Row>(
    `select operation, account, vault, key_hash as "keyHash", session, embeddings, model, user_turn as "userTurns",
            expires_at as "end", shares, metadata
     from open_exchanges where renewed_at < now() - make_interval(secs => $1)
     order by renewed_at limit $2`,
    [seconds, limit],
    'open-exchanges.abandoned',
  )
  return rows.map(({ end, ...row }) => ({
    ...row,
    expiresAt: end?.getTime(),
    metadata: row.metadata ?? undefined,
  }))
}

/**
 * Deletes the open exchanges of a cleared range, and the recalled turns of its vault. Unanswered turns go with
 * the whole vault alone.
 *
 * @returns the number of exchanges.
 */
export async function dropClearedExchanges(
  query: Query,
  { vault, session, upTo, vaultEpoch }: ClearedRange,
): Promise<number> {
  // The vault is locked first, in the same order as when an exchange is closed.
  const { rowCount } = await query(
    `with held as (select id from vaults where id = $1 for no key update),
     told as (delete from recalled_turns where vault = $1),
     unanswered as (delete from unanswered_turns where vault = $1 and $2::text is null)
     delete from open_exchanges o using held h
     where o.vault = h.id
       and case when $2::text is null then o.epoch <= $3
                else o.session = $2 and o.session_epoch <= $3 and o.epoch <= $4 end`,
    [vault, session, upTo, vaultEpoch],
    'open-exchanges.void',
  )
  return rowCount
}

/** A turn without another call for this long has ended; its last step is stored. */
const stepSeconds = 3_600

/**
 * Keeps the text of a step of a turn, in place of that of an earlier step: an open exchange that is never
 * renewed, so that the sweep for abandoned exchanges stores it.
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
    userTurns,
  }: {
    vault: string
    turn: Buffer
    operation: string
    call: string
    userTurns: readonly Turn[]
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
    [vault, turn, operation, call, JSON.stringify(userTurns), stepSeconds],
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
 * Ends turns that another turn follows: the next sweep stores their kept steps.
 *
 * @returns those whose messages are stored or will be.
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

import type { Cleared } from '#shared/erasure/job.ts'
import type { Turn } from '#shared/memory/content.ts'
import type { Query, Transaction } from '#shared/postgres/connect.ts'

/** A model call under way, as far as it can be told before its answer. */
export type OpenExchangeRow = {
  operation: string
  account: string
  vault: string
  keyHash: Buffer
  session: string | null
  /** The embedding model it is to be stored with. */
  embeddings: string
  /** Provider-prefixed. */
  model: string
  /** What is stored of the user, whatever becomes of the answer. */
  said: Turn[]
}

/** Writes rows in one statement. One that is there already, of a request sent again, is renewed. */
export async function insertOpen(query: Query, rows: readonly OpenExchangeRow[]): Promise<void> {
  const items = rows.map(({ keyHash, ...row }) => ({ ...row, key_hash: keyHash.toString('hex') }))
  await query(
    `insert into open_exchanges (operation, account, vault, key_hash, session, epoch, session_epoch,
                                 embeddings, model, said)
     select i.operation, i.account, i.vault, decode(i.key_hash, 'hex'), i.session, v.epoch,
            coalesce(s.epoch, 0), i.embeddings, i.model, i.said
     from jsonb_to_recordset($1::jsonb) as i(
       operation uuid, account uuid, vault uuid, key_hash text, session text, embeddings text,
       model text, said jsonb)
     join vaults v on v.id = i.vault
     left join sessions s on s.vault = i.vault and s.session = i.session
     on conflict (operation) do update set renewed_at = now()`,
    [JSON.stringify(items)],
    'open-exchanges.insert',
  )
}

/** Shows that these are still served. */
export async function renewOpen(query: Query, operations: readonly string[]): Promise<void> {
  await query(
    'update open_exchanges set renewed_at = now() where operation = any($1::uuid[])',
    [operations],
    'open-exchanges.renew',
  )
}

/** Forgets exchanges of which nothing is to be stored. */
export async function dropOpen(query: Query, operations: readonly string[]): Promise<void> {
  await query(
    'delete from open_exchanges where operation = any($1::uuid[])',
    [operations],
    'open-exchanges.drop',
  )
}

/**
 * What closing found: `open`, and now it is not; `void`, what it was said to has been cleared since;
 * `swept`, what the user said is promised already, without an answer; `kept`, with one.
 */
export type Closing = 'open' | 'void' | 'swept' | 'kept'

/**
 * Ends exchanges, in the transaction that promises to store them. Their vaults, and all `vaults` that
 * the transaction will hold, are held until it ends: no clearing comes between this look and that
 * promise.
 *
 * @returns how each operation stood.
 */
export async function closeOpen(
  { query }: Transaction,
  operations: readonly string[],
  vaults: readonly string[],
): Promise<Map<string, Closing>> {
  // By itself, so that the next statement sees what whoever held them before has written.
  await query(
    'select id from vaults where id = any($1::uuid[]) order by id for no key update',
    [vaults],
    'open-exchanges.hold',
  )
  const { rows } = await query<{ operation: string; closing: Closing }>(
    `with ended as (
       delete from open_exchanges where operation = any($1::uuid[])
       returning operation, vault, session, epoch, session_epoch
     )
     select asked.operation,
            case when e.operation is not null
                   then case when e.epoch = v.epoch and e.session_epoch = coalesce(s.epoch, 0)
                             then 'open' else 'void' end
                 when o.id is null then 'void'
                 -- Only an answer has output: what is swept up is billed without.
                 when exists (select from usage_events u where u.id = o.id and u.output_tokens > 0)
                   then 'kept'
                 else 'swept' end as closing
     from unnest($1::uuid[]) as asked(operation)
     left join ended e on e.operation = asked.operation
     left join operations o on o.id = asked.operation
     left join vaults v on v.id = e.vault
     left join sessions s on s.vault = e.vault and s.session = e.session`,
    [operations],
    'open-exchanges.close',
  )
  return new Map(rows.map(({ operation, closing }) => [operation, closing]))
}

/** Exchanges nobody has renewed for `seconds`, longest first. */
export async function abandonedOpen(
  query: Query,
  { seconds, limit }: { seconds: number; limit: number },
): Promise<OpenExchangeRow[]> {
  const { rows } = await query<OpenExchangeRow>(
    `select operation, account, vault, key_hash as "keyHash", session, embeddings, model, said
     from open_exchanges where renewed_at < now() - make_interval(secs => $1)
     order by renewed_at limit $2`,
    [seconds, limit],
    'open-exchanges.abandoned',
  )
  return rows
}

/** Forgets what was said into what was cleared. @returns how many exchanges that were. */
export async function dropVoidOpen(
  query: Query,
  { vault, session, upTo }: Cleared,
): Promise<number> {
  // The vault is held first, as whoever closes an exchange holds it.
  const { rowCount } = await query(
    `with held as (select id from vaults where id = $1 for no key update)
     delete from open_exchanges o using held h
     where o.vault = h.id
       and case when $2::text is null then o.epoch <= $3
                else o.session = $2 and o.session_epoch <= $3 end`,
    [vault, session, upTo],
    'open-exchanges.void',
  )
  return rowCount
}

import actions from '#shared/events/account-actions.json' with { type: 'json' }
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** What was done to an account, as the contract lists it; each has the words that people read: a verb and its object. */
export type AccountAction = keyof typeof actions

export const accountActions = Object.keys(actions) as AccountAction[]

export type AccountEvent = {
  position: number
  hash: Buffer
  id: string
  action: AccountAction
  subject: string
  /** Microseconds since 1970, as digits: more than a number holds. */
  micros: string
  actor: string
  /** The product's id of the user whose key is the subject, while its vault exists; only in lists. */
  externalId?: string | null
  /** JSON of `[before, after]`, or `[before, after, organization]`, where the event records a change. */
  change: string | null
}

export type RecordedValue = string | number | RecordedFields | null

/** Ids, labels, counts and settings; never words of members, and no secret. */
export type RecordedFields = Readonly<
  Record<string, string | number | boolean | null | readonly string[]>
>

const columns = `position, hash, id, action, subject, actor, change,
  floor(extract(epoch from created_at) * 1000000)::bigint::text as micros`

export type NewAccountEvent = {
  account: string
  /** An admin's email, a masked Memory Key, or `serviceActor`. */
  actor: string
  action: AccountAction
  /** A masked key or credential; the id of a webhook, an organization or a part of one; a provider; `account`. */
  subject: string
  /** A value before and after. */
  change?: readonly [before: RecordedValue, after: RecordedValue]
  /** The id of the organization whose part was changed; recorded with `change`. */
  organization?: string
}

/** The actor of scripts of the operator, and of workers. */
export const serviceActor = 'service'

/** Records one action. Call it in the transaction of that action. */
export const recordAccountEvent = (
  tx: Pick<Transaction, 'query'>,
  event: NewAccountEvent,
): Promise<void> => recordAccountEvents(tx, [event])

/**
 * Appends events, in this order, to the chains of their accounts; events of a missing account are left out. Position,
 * time and hash come from the trigger `chain_account_event`.
 */
export async function recordAccountEvents(
  { query }: Pick<Transaction, 'query'>,
  events: readonly NewAccountEvent[],
): Promise<void> {
  if (events.length === 0) return
  // Locks the account before its chain, in the order of the erasure.
  await query(
    `with item as (
       select * from jsonb_to_recordset($1::jsonb)
         as item(n int, account uuid, actor text, action text, subject text, change text)
     ), locked as (
       select id from accounts where id in (select account from item) order by id for key share
     )
     insert into account_events (account, action, subject, actor, change)
     select i.account, i.action, i.subject, i.actor, i.change
     from item i join locked on locked.id = i.account order by i.n`,
    [JSON.stringify(events.map(toInsertedRow))],
    'account-events.record',
  )
}

const toInsertedRow = ({ change, organization, ...event }: NewAccountEvent, n: number) => ({
  n,
  ...event,
  ...(change && {
    change: JSON.stringify(organization === undefined ? change : [...change, organization]),
  }),
})

/** Events of an account, newest first. */
export async function listAccountEvents(
  query: Query,
  account: string,
  filter: {
    action: AccountAction | undefined
    /** Epoch milliseconds, inclusive. */
    since: number | undefined
    /** The position of the last event of the previous page. */
    before: number | undefined
    limit: number
  },
): Promise<AccountEvent[]> {
  const { action, since, before, limit } = filter
  const { rows } = await query<AccountEvent>(
    `select ${columns},
            (select v.external_id from memory_keys k join vaults v on v.id = k.vault
             where k.account = $1 and k.masked = account_events.subject and k.kind = 'vault'
             limit 1) as "externalId"
     from account_events
     where account = $1 and ($2::text is null or action = $2)
       and ($3::float8 is null or created_at >= to_timestamp($3 / 1000))
       and position < coalesce($4, 9223372036854775807)
     order by position desc limit $5`,
    [account, action ?? null, since ?? null, before ?? null, limit],
    'account-events.list',
  )
  return rows
}

/** The end of an account's chain; position 0 when it has no events. */
export async function accountChainHead(
  query: Query,
  account: string,
): Promise<{ position: number; hash: Buffer }> {
  const { rows } = await query<{ position: number; hash: Buffer }>(
    'select position, hash from account_event_heads where account = $1',
    [account],
  )
  return rows[0] ?? { position: 0, hash: Buffer.alloc(0) }
}

/** Events after a position, in their order. */
export async function accountChainEntries(
  query: Query,
  account: string,
  { after, limit }: { after: number; limit: number },
): Promise<AccountEvent[]> {
  const { rows } = await query<AccountEvent>(
    `select ${columns} from account_events
     where account = $1 and position > $2 order by position limit $3`,
    [account, after, limit],
  )
  return rows
}

/** Accounts with events, after an id, by id. */
export async function accountIdsWithEvents(
  query: Query,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const { rows } = await query<{ account: string }>(
    `select account from account_event_heads
     where $1::uuid is null or account > $1 order by account limit $2`,
    [after, limit],
  )
  return rows.map(({ account }) => account)
}

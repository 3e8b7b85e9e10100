import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { givenUpMax } from '#shared/events/webhooks/deliveries.postgres.ts'

export type WebhookEventName =
  | 'operation.finished'
  | 'reflection.suggested'
  | 'review.waiting'
  | 'key.revoked'
  | 'budget.warning'
  | 'budget.used_up'
  | 'audit.event'

/** What a webhook is sent, the same for every try. */
export type WebhookEvent = {
  /** By which receivers drop duplicates. */
  id: string
  type: string
  /** RFC 3339. */
  timestamp: string
  data: object
}

/** Sent on request, whatever the subscription. */
export const testEvent = 'webhook.test'

export type WebhookRow = {
  id: string
  url: string
  description: string
  events: WebhookEventName[]
  /** The start of a series of failures only; null while messages arrive. */
  failingSince: Date | null
  disabledAt: Date | null
  disabledReason: 'owner' | 'failures' | 'gone' | null
  createdAt: Date
  updatedAt: Date
}

/** The address is sealed. */
export type StoredWebhook = Omit<WebhookRow, 'url'> & { storedUrl: string }

const columns = `id, url as "storedUrl", description, events, failing_since as "failingSince",
  disabled_at as "disabledAt", disabled_reason as "disabledReason",
  created_at as "createdAt", updated_at as "updatedAt"`

/** Oldest first. */
export async function listStoredWebhooks(query: Query, account: string): Promise<StoredWebhook[]> {
  const { rows } = await query<StoredWebhook>(
    `select ${columns} from webhooks where account = $1 order by created_at, id`,
    [account],
  )
  return rows
}

export async function findStoredWebhook(
  query: Query,
  account: string,
  id: string,
): Promise<StoredWebhook | undefined> {
  const { rows } = await query<StoredWebhook>(
    `select ${columns} from webhooks where id = $2 and account = $1`,
    [account, id],
  )
  return rows[0]
}

/** Inserts a webhook; one of the same id gets the newer secret. @returns `refused` where the account has too many. */
export async function insertWebhook(
  tx: Transaction,
  webhook: Pick<StoredWebhook, 'id' | 'description' | 'events' | 'storedUrl'> & {
    account: string
    secret: string
  },
  webhooksMax: number,
): Promise<'created' | 'changed' | 'refused'> {
  const { id, account, storedUrl, description, events, secret } = webhook
  // The lock keeps two requests from both finding room.
  await tx.query('select id from accounts where id = $1 for no key update', [account])
  const { rows } = await tx.query<{ isNew: boolean }>(
    `insert into webhooks (id, account, url, description, events, secret)
     select $1, $2, $3, $4, $5, $6
     where (select count(*) from webhooks where account = $2 and id <> $1) < $7
     on conflict (id) do update set secret = excluded.secret where webhooks.account = $2
     returning xmax = 0 as "isNew"`,
    [id, account, storedUrl, description, events, secret, webhooksMax],
  )
  if (!rows[0]) return 'refused'
  return rows[0].isNew ? 'created' : 'changed'
}

export type StoredWebhookChange = {
  /** Sealed. */
  storedUrl?: string | undefined
  description?: string | undefined
  events?: WebhookEventName[] | undefined
  active?: boolean | undefined
}

/**
 * Writes the given fields. Switching on clears the failures; switching off gives up 10,000 pending messages at once,
 * and the sweeps the others.
 *
 * @returns whether it is different now; undefined when the account has none of that id.
 */
export async function updateWebhook(
  query: Query,
  account: string,
  id: string,
  { storedUrl, description, events, active }: StoredWebhookChange,
): Promise<boolean | undefined> {
  const { rows } = await query<{ changed: boolean }>(
    `with former as (
       select id, url, description, events, disabled_at from webhooks
       where id = $2 and account = $1 for no key update
     ), changed as (
       update webhooks w set url = coalesce($3, w.url), description = coalesce($4, w.description),
         events = coalesce($5, w.events),
         disabled_at = case when $6 then null when not $6 then coalesce(w.disabled_at, now())
                            else w.disabled_at end,
         disabled_reason = case when $6 then null when not $6 then coalesce(disabled_reason, 'owner')
                                else disabled_reason end,
         failing_since = case when $6 then null else failing_since end,
         updated_at = now()
       from former where w.id = former.id
       returning (w.url, w.description, w.events, w.disabled_at) is distinct from
         (former.url, former.description, former.events, former.disabled_at) as changed
     ), given_up as (
       update webhook_deliveries set state = 'failed' where id = any(array(
         select id from webhook_deliveries
         where webhook = $2 and state = 'pending' and not $6 and exists (select from changed)
         limit ${givenUpMax})) and state = 'pending'
     )
     select changed from changed`,
    [account, id, storedUrl ?? null, description ?? null, events ?? null, active ?? null],
  )
  return rows[0]?.changed
}

/** Replaces the secret; the former one signs for `graceSeconds` more. @returns false when there is none. */
export async function replaceSecret(
  query: Query,
  account: string,
  id: string,
  { secret, graceSeconds }: { secret: string; graceSeconds: number },
): Promise<boolean> {
  const { rowCount } = await query(
    `update webhooks set former_secret = secret, secret = $3,
       former_until = now() + make_interval(secs => $4), updated_at = now()
     where id = $2 and account = $1`,
    [account, id, secret, graceSeconds],
  )
  return rowCount === 1
}

/** Switches webhooks off, so that their logs end. @returns how many there are. */
export async function switchOffWebhooks(
  query: Query,
  { account, id }: { account: string; id?: string },
): Promise<number> {
  const { rowCount } = await query(
    `update webhooks set disabled_at = coalesce(disabled_at, now()),
       disabled_reason = coalesce(disabled_reason, 'owner')
     where account = $1 and ($2::uuid is null or id = $2)`,
    [account, id ?? null],
  )
  return rowCount
}

const deliveriesMax = 10_000

/** Deletes the logs of webhooks with their pending messages, in short statements. */
export async function deleteDeliveries(
  query: Query,
  { account, id }: { account: string; id?: string },
): Promise<void> {
  for (let removed = deliveriesMax; removed === deliveriesMax;) {
    ;({ rowCount: removed } = await query(
      `delete from webhook_deliveries where id = any(array(
         select d.id from webhooks w join webhook_deliveries d on d.webhook = w.id
         where w.account = $1 and ($2::uuid is null or w.id = $2) limit ${deliveriesMax}))`,
      [account, id ?? null],
    ))
  }
}

/** @returns false when there is none. */
export async function deleteWebhook(query: Query, account: string, id: string): Promise<boolean> {
  const { rowCount } = await query('delete from webhooks where id = $2 and account = $1', [
    account,
    id,
  ])
  return rowCount === 1
}

import type { Query } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

export type DeliveryRow = {
  id: string
  event: string
  data: object
  state: 'pending' | 'delivered' | 'failed'
  /** The next try of a pending message. */
  dueAt: Date
  /** The newest thirty, oldest first. */
  tries: { at: string; status: number | null; error: string | null; ms: number }[]
  createdAt: Date
}

const columns = `id, event, data, state, due_at as "dueAt", tries, created_at as "createdAt"`

/** The log of a webhook, newest first; the next page begins after the `position` of the last row. */
export async function listDeliveries(
  query: Query,
  webhook: string,
  filter: {
    state: DeliveryRow['state'] | undefined
    /** Only messages older than this one. */
    before: { createdAt: string; id: string } | undefined
    limit: number
  },
): Promise<(DeliveryRow & { position: string })[]> {
  const { state, before, limit } = filter
  const { rows } = await query<DeliveryRow & { position: string }>(
    `select ${columns}, created_at::text as position from webhook_deliveries
     where webhook = $1 and ($2::text is null or state = $2)
       and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
     order by created_at desc, id desc limit $5`,
    [webhook, state ?? null, before?.createdAt ?? null, before?.id ?? null, limit],
  )
  return rows
}

/** Writes a message for every active webhook that is subscribed to one of the events. */
export async function insertDeliveries(
  query: Query,
  events: readonly { account: string; event: string; data: object }[],
): Promise<{ id: string; webhook: string }[]> {
  const { rows } = await query<{ id: string; webhook: string }>(
    `insert into webhook_deliveries (webhook, event, data)
     select w.id, e.event, e.data
     from jsonb_to_recordset($1) as e(account uuid, event text, data jsonb)
     join webhooks w on w.account = e.account and w.disabled_at is null and e.event = any(w.events)
     returning id, webhook`,
    [JSON.stringify(events)],
    'webhooks.emit',
  )
  return rows
}

/** Writes a message for one webhook, whatever its subscription. @returns false when the id exists. */
export async function insertDelivery(
  query: Query,
  { id, webhook, event, data }: { id: string; webhook: string; event: string; data: object },
): Promise<boolean> {
  const { rowCount } = await query(
    `insert into webhook_deliveries (id, webhook, event, data) values ($1, $2, $3, $4)
     on conflict (id) do nothing`,
    [id, webhook, event, JSON.stringify(data)],
  )
  return rowCount === 1
}

/** Makes a message due with all its tries; undefined when the webhook has no such message. */
export async function replayDelivery(
  query: Query,
  webhook: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  const { rows } = await query<DeliveryRow>(
    `update webhook_deliveries set state = 'pending', attempts = 0, due_at = now()
     where id = $2 and webhook = $1 returning ${columns}`,
    [webhook, id],
  )
  return rows[0]
}

export type PendingDelivery = {
  id: string
  webhook: string
  account: string
  event: string
  data: object
  attempts: number
  createdAt: Date
  /** 0 when it is due. */
  dueInSeconds: number
  /** The webhook is switched off. */
  isOff: boolean
  /** Sealed, as are the secrets. */
  storedUrl: string
  secret: string
  /** Null once it does not sign any more. */
  formerSecret: string | null
}

export async function findPendingDelivery(
  query: Query,
  id: string,
): Promise<PendingDelivery | undefined> {
  const { rows } = await query<PendingDelivery>(
    `select d.id, d.webhook, w.account, d.event, d.data, d.attempts, d.created_at as "createdAt",
       w.url as "storedUrl", w.disabled_at is not null as "isOff",
       greatest(0, extract(epoch from d.due_at - now()))::float8 as "dueInSeconds",
       w.secret, case when w.former_until > now() then w.former_secret end as "formerSecret"
     from webhook_deliveries d join webhooks w on w.id = d.webhook
     where d.id = $1 and d.state = 'pending'`,
    [id],
    'webhooks.find',
  )
  return rows[0]
}

/** Rows of one statement, which checks their state twice: a message may be delivered while it waits. */
export const givenUpMax = 10_000

/** Gives up pending messages of webhooks, or of one, that are switched off. @returns how many, at most 10,000. */
export async function giveUpDeliveries(query: Query, webhook?: string): Promise<number> {
  const { rowCount } = await query(
    `update webhook_deliveries set state = 'failed' where id = any(array(
       select d.id from webhooks w
       join webhook_deliveries d on d.webhook = w.id and d.state = 'pending'
       where w.disabled_at is not null and ($1::uuid is null or w.id = $1)
       limit ${givenUpMax})) and state = 'pending'`,
    [webhook ?? null],
  )
  return rowCount
}

/** Gives up a message whose webhook is switched off. */
export async function giveUpDelivery(query: Query, id: string): Promise<void> {
  await query(
    `update webhook_deliveries d set state = 'failed' from webhooks w
     where d.id = $1 and d.state = 'pending' and w.id = d.webhook and w.disabled_at is not null`,
    [id],
    'webhooks.give-up',
  )
}

/** Due messages without a waiting, running or dead job; oldest first. */
export async function deliveriesWithoutJob(
  query: Query,
  limit: number,
): Promise<{ id: string; webhook: string }[]> {
  const { rows } = await query<{ id: string; webhook: string }>(
    `select d.id, d.webhook from webhook_deliveries d
     where d.state = 'pending' and d.due_at <= now()
       and not exists (select from ${pgBossSchema}.job j
                       where j.name = any($1) and j.state < 'completed'
                         and j.singleton_key = d.id::text)
     order by d.due_at limit $2`,
    [['webhook', deadLetterQueueOf('webhook')], limit],
  )
  return rows
}

const loggedTriesMax = 30

type AttemptResult = {
  /** Another try follows. */
  isPending: boolean
  /** Why this try has switched the webhook off, if it has. */
  disabledReason: 'failures' | 'gone' | null
}

/**
 * Records how a try ended. A failure moves the message to its next try or gives it up. A webhook that has failed for
 * days, or is gone, is switched off as by `updateWebhook`.
 */
export async function recordAttempt(
  query: Query,
  { id, webhook }: Pick<PendingDelivery, 'id' | 'webhook'>,
  outcome: {
    attempt: { status: number | null; error: string | null; ms: number }
    /** Null when there is no next try. */
    retrySeconds: number | null
    /** The webhook answered 410. */
    isGone: boolean
    /** Days of failures only, after which the webhook is switched off. */
    failingDaysMax: number
  },
): Promise<AttemptResult> {
  const { attempt, retrySeconds, isGone, failingDaysMax } = outcome
  const isDelivered = attempt.error === null
  const { rows } = await query<AttemptResult>(
    `with target as (
       update webhooks set
         failing_since = case when $3 then null else coalesce(failing_since, now()) end,
         disabled_at = case when disabled_at is not null then disabled_at
                            when $6 or (not $3 and failing_since < now() - make_interval(days => $7))
                            then now() end,
         disabled_reason = case when disabled_at is not null then disabled_reason when $6 then 'gone'
                                when not $3 and failing_since < now() - make_interval(days => $7)
                                then 'failures' end
       where id = $2
       -- now() is when the transaction began: equal means that this try has switched it off.
       returning disabled_at is not null as is_off, coalesce(disabled_at = now(), false) as is_off_now,
                 disabled_reason as reason
     ), written as (
       update webhook_deliveries set attempts = attempts + 1,
         state = case when $3 then 'delivered'
                      when $5::float8 is null or (select is_off from target) then 'failed'
                      else state end,
         due_at = now() + make_interval(secs => coalesce($5, 0)),
         tries = (case when jsonb_array_length(tries) >= ${loggedTriesMax} then tries - 0 else tries end)
                 || jsonb_build_array($4::jsonb || jsonb_build_object('at', now()))
       where id = $1
       returning state
     ), given_up as (
       update webhook_deliveries set state = 'failed' where id = any(array(
         select id from webhook_deliveries
         where webhook = $2 and id <> $1 and state = 'pending' and (select is_off_now from target)
         limit ${givenUpMax})) and state = 'pending'
     )
     select written.state = 'pending' as "isPending",
            case when is_off_now then reason end as "disabledReason"
     from target, written`,
    [id, webhook, isDelivered, JSON.stringify(attempt), retrySeconds, isGone, failingDaysMax],
    'webhooks.tried',
  )
  return rows[0] ?? { isPending: false, disabledReason: null }
}

const deliveryRetentionDays = 30

/** @returns how many. */
export async function dropOldDeliveries(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from webhook_deliveries where id = any(array(
       select id from webhook_deliveries
       where created_at < now() - make_interval(days => $1) and state <> 'pending' limit 10000))`,
    [deliveryRetentionDays],
  )
  return rowCount
}

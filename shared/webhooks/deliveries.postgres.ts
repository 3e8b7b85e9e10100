import type { Query } from '#shared/storage/postgres/connect.ts'
import { dueChannel } from '#shared/webhooks/event.ts'

/** One try, as the log keeps it. */
type LoggedAttempt = { at: string; status: number | null; error: string | null; ms: number }

export type DeliveryRow = {
  id: string
  event: string
  data: object
  state: 'pending' | 'delivered' | 'failed'
  /** When a pending one is sent next. */
  dueAt: Date
  /** The newest ones, oldest first. */
  tries: LoggedAttempt[]
  createdAt: Date
}

const columns = `id, event, data, state, due_at as "dueAt", tries, created_at as "createdAt"`

export type DeliveryFilter = {
  state: DeliveryRow['state'] | undefined
  /** Only those before this one. */
  before: { createdAt: string; id: string } | undefined
  limit: number
}

/** The log of a webhook, newest first. `position` of a row is where a next page begins. */
export async function listDeliveries(
  query: Query,
  webhook: string,
  { state, before, limit }: DeliveryFilter,
): Promise<(DeliveryRow & { position: string })[]> {
  const { rows } = await query<DeliveryRow & { position: string }>(
    `select ${columns}, created_at::text as position from webhook_deliveries
     where webhook = $1 and ($2::text is null or state = $2)
       and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
     order by created_at desc, id desc limit $5`,
    [webhook, state ?? null, before?.createdAt ?? null, before?.id ?? null, limit],
  )
  return rows
}

/** Writes a message for one webhook, whatever it is subscribed to. */
export async function insertDelivery(
  query: Query,
  { id, webhook, event, data }: { id: string; webhook: string; event: string; data: object },
): Promise<void> {
  await query(
    `with written as (
       insert into webhook_deliveries (id, webhook, event, data) values ($1, $2, $3, $4)
       on conflict (id) do nothing returning id
     )
     select pg_notify('${dueChannel}', '') from written`,
    [id, webhook, event, JSON.stringify(data)],
  )
}

/** Sends a message once more, with all its tries before it; undefined when the webhook has none such. */
export async function replayDelivery(
  query: Query,
  webhook: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  const { rows } = await query<DeliveryRow>(
    `with again as (
       update webhook_deliveries set state = 'pending', attempts = 0, due_at = now()
       where id = $2 and webhook = $1 returning *
     )
     select ${columns}, pg_notify('${dueChannel}', '') as told from again`,
    [webhook, id],
  )
  return rows[0]
}

/** A message that somebody has taken to send. */
export type DueDelivery = {
  id: string
  webhook: string
  event: string
  data: object
  /** How often it has been tried. */
  attempts: number
  createdAt: Date
  url: string
  /** Sealed. */
  secret: string
  /** Sealed; null once it does not sign any more. */
  formerSecret: string | null
}

/**
 * Takes messages that are due, a few of each webhook, so that a slow one keeps nobody waiting. Whoever
 * does not say within `leaseSeconds` how it went is taken to have died.
 */
export async function claimDueDeliveries(
  query: Query,
  {
    perWebhook,
    webhooks,
    leaseSeconds,
  }: { perWebhook: number; webhooks: number; leaseSeconds: number },
): Promise<DueDelivery[]> {
  const { rows } = await query<DueDelivery>(
    `with asked as (
       select webhook from webhook_deliveries where state = 'pending' and due_at <= now()
       group by webhook order by min(due_at) limit $2
     ), due as (
       select d.id from asked, lateral (
         select id from webhook_deliveries
         where webhook = asked.webhook and state = 'pending' and due_at <= now()
         order by due_at limit $1 for update skip locked
       ) d
     )
     update webhook_deliveries d set due_at = now() + make_interval(secs => $3)
     from due, webhooks w
     where d.id = due.id and w.id = d.webhook
     returning d.id, d.webhook, d.event, d.data, d.attempts, d.created_at as "createdAt", w.url,
       w.secret, case when w.former_until > now() then w.former_secret end as "formerSecret"`,
    [perWebhook, webhooks, leaseSeconds],
    'webhooks.claim',
  )
  return rows
}

/** How many tries the log keeps. */
const loggedTriesMax = 30

export type AttemptOutcome = {
  attempt: { status: number | null; error: string | null; ms: number }
  /** Null when there is no next try. */
  retrySeconds: number | null
  /** 410: nobody is there any more. */
  isGone: boolean
  /** Days of nothing but failures after which nothing is sent any more. */
  failingDaysMax: number
}

/**
 * Writes down how a try ended. A failure moves the message to its next try, or gives it up; and the
 * webhook with all that waits for it, when it has failed for days or is gone.
 *
 * @returns why the webhook has been switched off by this, or null.
 */
export async function recordAttempt(
  query: Query,
  { id, webhook }: Pick<DueDelivery, 'id' | 'webhook'>,
  { attempt, retrySeconds, isGone, failingDaysMax }: AttemptOutcome,
): Promise<'failures' | 'gone' | null> {
  const isDelivered = attempt.error === null
  const { rows } = await query<{ reason: 'failures' | 'gone' | null }>(
    `with standing as (
       update webhooks set
         failing_since = case when $3 then null else coalesce(failing_since, now()) end,
         disabled_at = case when disabled_at is not null then disabled_at
                            when $6 or (not $3 and failing_since < now() - make_interval(days => $7))
                            then now() end,
         disabled_reason = case when disabled_at is not null then disabled_reason when $6 then 'gone'
                                when not $3 and failing_since < now() - make_interval(days => $7)
                                then 'failures' end
       where id = $2
       returning disabled_at is not null as "off", coalesce(disabled_at = now(), false) as "now",
                 disabled_reason as reason
     ), written as (
       update webhook_deliveries set attempts = attempts + 1,
         state = case when $3 then 'delivered'
                      when $5::float8 is null or (select "off" from standing) then 'failed'
                      else state end,
         due_at = now() + make_interval(secs => coalesce($5, 0)),
         tries = (case when jsonb_array_length(tries) >= ${loggedTriesMax} then tries - 0 else tries end)
                 || jsonb_build_array($4::jsonb || jsonb_build_object('at', now()))
       where id = $1
     ), given_up as (
       update webhook_deliveries set state = 'failed'
       where webhook = $2 and id <> $1 and state = 'pending' and (select "now" from standing)
     )
     select case when "now" then reason end as reason from standing`,
    [id, webhook, isDelivered, JSON.stringify(attempt), retrySeconds, isGone, failingDaysMax],
    'webhooks.tried',
  )
  return rows[0]?.reason ?? null
}

/** When the next message is due; null when none waits. */
export async function nextDeliveryDelay(query: Query): Promise<number | null> {
  const { rows } = await query<{ ms: number | null }>(
    `select greatest(0, extract(epoch from min(due_at) - now()) * 1000)::float8 as ms
     from webhook_deliveries where state = 'pending'`,
    [],
    'webhooks.next',
  )
  return rows[0]?.ms ?? null
}

const deliveryRetentionDays = 30

/** Forgets messages of long ago. @returns how many. */
export async function dropOldDeliveries(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from webhook_deliveries where id = any(array(
       select id from webhook_deliveries
       where created_at < now() - make_interval(days => $1) and state <> 'pending' limit 10000))`,
    [deliveryRetentionDays],
  )
  return rowCount
}

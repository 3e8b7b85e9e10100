import { randomBytes } from 'node:crypto'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { isUuid } from '#shared/core/ids.ts'
import { hastenDeliveryJob, sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  givenUpMax,
  giveUpDeliveries,
  insertDelivery,
  replayDelivery,
  type DeliveryRow,
} from '#shared/events/webhooks/deliveries.postgres.ts'
import {
  deleteDeliveries,
  deleteWebhook,
  findStoredWebhook,
  insertWebhook,
  listStoredWebhooks,
  replaceSecret,
  switchOffWebhooks,
  testEvent,
  updateWebhook,
  type StoredWebhook,
  type StoredWebhookChange,
  type WebhookEventName,
  type WebhookRow,
} from '#shared/events/webhooks/webhooks.postgres.ts'
import {
  isAuditOnly,
  requireReceiverUrl,
  webhookPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'
import type { Config } from '#shared/core/config.ts'

type WebhookBackend = { postgres: Postgres; seal: Seal; config: Config }

/** The account, and who changes its webhook, as the account's events name them. */
export type WebhookOwner = { account: string; actor: string }

const webhooksMax = 20

/** 32 random bytes in the form of Standard Webhooks. */
const mintSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const secretPlace = (webhook: string): string => `webhooks:${webhook}`

/** @throws Error when it was sealed for another webhook, or by a key no longer configured. */
export const openSecret = (seal: Seal, webhook: string, sealed: string): string =>
  seal.open(sealed, secretPlace(webhook))

/**
 * Subscribes an address to events. The secret is in the result and nowhere else in clear.
 *
 * @param id becomes the webhook's id
 * @throws Refusal `invalid` for an address nothing may be sent to; `conflict` when there are 20 already.
 */
export async function createWebhook(
  { postgres, seal, config }: WebhookBackend,
  { account, actor }: WebhookOwner,
  id: string,
  { url, description, events }: { url: string; description: string; events: WebhookEventName[] },
): Promise<{ webhook: WebhookRow; secret: string }> {
  const target = toTargetUrl(config, url)
  requireTaken(target, events)
  const secret = mintSecret()
  const sealed = seal.seal(secret, secretPlace(id))
  const storedUrl = sealUrl(seal, id, target)
  const webhook = { id, account, storedUrl, description, events, secret: sealed }
  await postgres.transaction(async tx => {
    const result = await insertWebhook(tx, webhook, webhooksMax)
    if (result === 'refused') throw refusal('conflict', 'tooManyWebhooks', { webhooksMax })
    await recordWebhookEvent(tx, { account, actor }, `webhook.${result}`, id)
  })
  return { webhook: await requireWebhook({ postgres, seal }, account, id), secret }
}

const toTargetUrl = (config: WebhookBackend['config'], url: string): string =>
  requireReceiverUrl(url, webhookPolicy(config)).url.href

function requireTaken(url: string, events: readonly WebhookEventName[]): void {
  if (!isAuditOnly(url) || events.every(event => event === 'audit.event')) return
  const hint = 'Give an https:// address to the other events'
  throw new Refusal('invalid', 'events of syslog and OTLP are audit.event alone', hint)
}

const toWebhookRow = (seal: Seal, { storedUrl, ...webhook }: StoredWebhook): WebhookRow => ({
  ...webhook,
  url: openUrl(seal, webhook.id, storedUrl),
})

/** Oldest first. @throws Refusal `conflict` when an address can no longer be opened. */
export async function listWebhooks(
  { postgres, seal }: { postgres: Pick<Postgres, 'query'>; seal: Seal },
  account: string,
): Promise<WebhookRow[]> {
  const stored = await listStoredWebhooks(postgres.query, account)
  return stored.map(webhook => toWebhookRow(seal, webhook))
}

/** @throws Refusal `missing`; `conflict` when its address can no longer be opened. */
export const requireWebhook = async (
  { postgres, seal }: { postgres: Pick<Postgres, 'query'>; seal: Seal },
  account: string,
  id: string,
): Promise<WebhookRow> =>
  toWebhookRow(seal, await requireStoredWebhook(postgres.query, account, id))

async function requireStoredWebhook(
  query: Query,
  account: string,
  id: string,
): Promise<StoredWebhook> {
  const webhook = isUuid(id) ? await findStoredWebhook(query, account, id) : undefined
  if (webhook) return webhook
  throw webhookNotFound()
}

const webhookNotFound = (): Refusal =>
  new Refusal('missing', 'No such webhook', 'GET /v1/account/webhooks lists those of the account')

/**
 * Changes the given fields. Switching a webhook off gives up its pending messages; switching it on clears its failures.
 *
 * @throws Refusal `missing`; `invalid` as `createWebhook`.
 */
export async function changeWebhook(
  { postgres, seal, config }: WebhookBackend,
  { account, actor }: WebhookOwner,
  id: string,
  { url, ...change }: Omit<StoredWebhookChange, 'storedUrl'> & { url?: string | undefined },
): Promise<WebhookRow> {
  const target = url === undefined ? undefined : toTargetUrl(config, url)
  const stored = await requireStoredWebhook(postgres.query, account, id)
  // The same address sealed again is another text, which would count as a change.
  const isKept = target === undefined || isSameUrl(seal, stored.id, stored.storedUrl, target)
  const storedUrl = isKept ? undefined : sealUrl(seal, stored.id, target)
  if (target !== undefined || change.events !== undefined)
    requireTaken(
      target ?? openUrl(seal, stored.id, stored.storedUrl),
      change.events ?? stored.events,
    )
  // Messages that were pending when it was switched off are not sent later.
  if (change.active) while ((await giveUpDeliveries(postgres.query, stored.id)) === givenUpMax);
  await postgres.transaction(async tx => {
    const isChanged = await updateWebhook(tx.query, account, id, { ...change, storedUrl })
    if (isChanged === undefined) throw webhookNotFound()
    if (isChanged) await recordWebhookEvent(tx, { account, actor }, 'webhook.changed', id)
  })
  return requireWebhook({ postgres, seal }, account, id)
}

const graceSeconds = 24 * 3600

/**
 * Replaces the secret of a webhook, in the caller's transaction. For a day messages are signed with both.
 *
 * @throws Refusal `missing`.
 */
export async function renewSecret(
  tx: Transaction,
  { seal }: { seal: Seal },
  { account, actor }: WebhookOwner,
  id: string,
): Promise<string> {
  if (!isUuid(id)) throw webhookNotFound()
  const secret = mintSecret()
  const renewal = { secret: seal.seal(secret, secretPlace(id)), graceSeconds }
  if (!(await replaceSecret(tx.query, account, id, renewal))) throw webhookNotFound()
  await recordWebhookEvent(tx, { account, actor }, 'webhook.changed', id)
  return secret
}

const recordWebhookEvent = (
  tx: Transaction,
  owner: WebhookOwner,
  action: 'webhook.created' | 'webhook.changed' | 'webhook.deleted',
  id: string,
): Promise<void> => recordAccountEvent(tx, { ...owner, action, subject: id.toLowerCase() })

/**
 * @param delivery becomes the id of the test message; the same one again sends nothing more
 * @throws Refusal `missing`; `conflict` when the webhook is switched off.
 */
export async function sendTest(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  account: string,
  id: string,
  delivery: string,
): Promise<void> {
  const { id: webhook } = await requireActiveWebhook(postgres.query, account, id)
  const message = { id: delivery, webhook, event: testEvent, data: { webhook_id: webhook } }
  await postgres.transaction(async tx => {
    if (await insertDelivery(tx.query, message)) await sendDeliveryJobs(tx, queue, [message])
  })
}

/**
 * Sends a message again under its id, by a job, in whatever state it is.
 *
 * @throws Refusal `missing`; `conflict` when the webhook is switched off.
 */
export async function replayToWebhook(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  account: string,
  id: string,
  delivery: string,
): Promise<DeliveryRow> {
  const { id: webhook } = await requireActiveWebhook(postgres.query, account, id)
  const replayed = isUuid(delivery)
    ? await postgres.transaction(async tx => {
        const row = await replayDelivery(tx.query, webhook, delivery)
        // The stored id: a client may write it in capitals, and a job is found by its text.
        if (row) await hastenDeliveryJob(tx, queue, { id: row.id, webhook })
        return row
      })
    : undefined
  if (replayed) return replayed
  throw new Refusal('missing', 'No such delivery', 'They are kept for 30 days')
}

async function requireActiveWebhook(
  query: Query,
  account: string,
  id: string,
): Promise<StoredWebhook> {
  const webhook = await requireStoredWebhook(query, account, id)
  if (webhook.disabledAt === null) return webhook
  throw refusal('conflict', 'webhookOff')
}

/** An address is stored sealed, since its path or query often is the receiver's secret. */
const urlPlace = (webhook: string): string => `webhooks.url:${webhook}`

export const sealUrl = (seal: Seal, webhook: string, url: string): string =>
  seal.seal(url, urlPlace(webhook))

/** @throws Refusal `conflict` when the master key that sealed the address is no longer configured. */
export function openUrl(seal: Seal, webhook: string, stored: string): string {
  try {
    return seal.open(stored, urlPlace(webhook))
  } catch {
    throw refusal('conflict', 'webhookSealed', { webhook })
  }
}

export function isSameUrl(seal: Seal, webhook: string, stored: string, url: string): boolean {
  try {
    return openUrl(seal, webhook, stored) === url
  } catch {
    return false
  }
}

/**
 * Deletes a webhook with its log and its pending messages. The log may have millions of rows, so it goes first, in
 * parts, while the webhook is switched off.
 *
 * @param settle runs in the transaction of the deletion
 * @throws Refusal `missing`.
 */
export async function removeWebhook(
  { query, transaction }: Pick<Postgres, 'query' | 'transaction'>,
  { account, actor }: WebhookOwner,
  id: string,
  settle: (tx: Transaction) => Promise<void>,
): Promise<void> {
  if (!isUuid(id)) throw webhookNotFound()
  if ((await switchOffWebhooks(query, { account, id })) === 0) throw webhookNotFound()
  await deleteDeliveries(query, { account, id })
  await transaction(async tx => {
    if (!(await deleteWebhook(tx.query, account, id))) throw webhookNotFound()
    await recordWebhookEvent(tx, { account, actor }, 'webhook.deleted', id)
    await settle(tx)
  })
}

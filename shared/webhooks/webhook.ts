import { randomBytes } from 'node:crypto'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  insertDelivery,
  replayDelivery,
  type DeliveryRow,
} from '#shared/webhooks/deliveries.postgres.ts'
import {
  findWebhook,
  insertWebhook,
  replaceSecret,
  updateWebhook,
  type WebhookChange,
  type WebhookRow,
} from '#shared/webhooks/webhooks.postgres.ts'
import { requirePublicUrl } from '#shared/webhooks/ssrf-guard.ts'
import { testEvent, type WebhookEventName } from '#shared/webhooks/event.ts'
import type { Config } from '#shared/core/config.ts'

type WebhookBackend = { postgres: Postgres; seal: Seal; config: Config }

/** Of one account. */
const webhooksMax = 20

/** A new signing secret: 32 random bytes in the form that libraries of Standard Webhooks take. */
const mintSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const sealContext = (webhook: string): string => `webhooks:${webhook}`

/** @throws Error when it was sealed for another webhook, or by a key no longer configured. */
export const openSecret = (seal: Seal, webhook: string, sealed: string): string =>
  seal.open(sealed, sealContext(webhook))

/**
 * Subscribes an address to events. The secret is in the result and nowhere else in clear.
 *
 * @param id becomes the webhook's id
 * @throws Refusal `invalid` for an address nothing may be sent to; `conflict` when there are 20 already.
 */
export async function createWebhook(
  { postgres, seal, config }: WebhookBackend,
  account: string,
  id: string,
  { url, description, events }: { url: string; description: string; events: WebhookEventName[] },
): Promise<{ webhook: WebhookRow; secret: string }> {
  const target = toTargetUrl(config, url)
  const secret = mintSecret()
  const sealed = seal.seal(secret, sealContext(id))
  const webhook = { id, account, url: target, description, events, secret: sealed }
  if (!(await postgres.transaction(tx => insertWebhook(tx, webhook, webhooksMax)))) {
    throw new Refusal(
      'conflict',
      `An account has at most ${webhooksMax} webhooks`,
      'Delete one that is not needed any more',
    )
  }
  return { webhook: await requireWebhook(postgres.query, account, id), secret }
}

const toTargetUrl = (config: WebhookBackend['config'], url: string): string =>
  requirePublicUrl(url, { allowLoopback: config.allowLoopbackWebhooks }).href

/** @throws Refusal `missing`. */
export async function requireWebhook(
  query: Query,
  account: string,
  id: string,
): Promise<WebhookRow> {
  const webhook = isUuid(id) ? await findWebhook(query, account, id) : undefined
  if (webhook) return webhook
  throw webhookNotFound()
}

export const webhookNotFound = (): Refusal =>
  new Refusal('missing', 'No such webhook', 'GET /v1/account/webhooks lists those of the account')

/**
 * Writes what is given. Switched off, what was still to be sent is given up; switched on, it begins anew.
 *
 * @throws Refusal `missing`; `invalid` as `createWebhook`.
 */
export async function changeWebhook(
  { postgres, config }: WebhookBackend,
  account: string,
  id: string,
  { url, ...change }: WebhookChange,
): Promise<WebhookRow> {
  const target = url === undefined ? undefined : toTargetUrl(config, url)
  const { query } = postgres
  const isChanged =
    isUuid(id) && (await updateWebhook(query, account, id, { ...change, url: target }))
  if (!isChanged) throw webhookNotFound()
  return requireWebhook(query, account, id)
}

const graceSeconds = 24 * 3600

/**
 * Gives a webhook another secret. For a day messages are signed with both.
 *
 * @throws Refusal `missing`.
 */
export async function renewSecret(
  { postgres, seal }: WebhookBackend,
  account: string,
  id: string,
): Promise<string> {
  const secret = mintSecret()
  const renewal = { secret: seal.seal(secret, sealContext(id)), graceSeconds }
  if (!isUuid(id) || !(await replaceSecret(postgres.query, account, id, renewal))) {
    throw webhookNotFound()
  }
  return secret
}

/**
 * Has a test message sent.
 *
 * @param delivery becomes the id of the message; the same one again sends nothing more
 * @throws Refusal `missing`; `conflict` when the webhook is switched off.
 */
export async function sendTest(
  { postgres }: { postgres: Postgres },
  account: string,
  id: string,
  delivery: string,
): Promise<void> {
  const webhook = await requireActiveWebhook(postgres.query, account, id)
  const data = { webhook_id: webhook.id }
  await insertDelivery(postgres.query, { id: delivery, webhook: id, event: testEvent, data })
}

/**
 * Has a message sent again under its id, whatever became of it.
 *
 * @throws Refusal `missing`; `conflict` when the webhook is switched off.
 */
export async function replayToWebhook(
  { postgres }: { postgres: Postgres },
  account: string,
  id: string,
  delivery: string,
): Promise<DeliveryRow> {
  const webhook = await requireActiveWebhook(postgres.query, account, id)
  const found = isUuid(delivery)
    ? await replayDelivery(postgres.query, webhook.id, delivery)
    : undefined
  if (found) return found
  throw new Refusal('missing', 'No such delivery', 'They are kept for 30 days')
}

async function requireActiveWebhook(
  query: Query,
  account: string,
  id: string,
): Promise<WebhookRow> {
  const webhook = await requireWebhook(query, account, id)
  if (webhook.disabledAt === null) return webhook
  throw new Refusal(
    'conflict',
    'This webhook is switched off',
    'PATCH it with {"active": true} first',
  )
}

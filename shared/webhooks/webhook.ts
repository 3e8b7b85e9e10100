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
import { requireTarget } from '#shared/webhooks/address.ts'
import { testEvent, type EventName } from '#shared/webhooks/event.ts'
import type { Config } from '#shared/core/config.ts'

type Keeping = { postgres: Postgres; seal: Seal; config: Config }

/** Of one account. */
const webhooksMax = 20

/** A new signing secret: 32 random bytes in the form that libraries of Standard Webhooks take. */
const mintSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const placeOf = (webhook: string): string => `webhooks:${webhook}`

/** @throws Error when it was sealed for another webhook, or by a key no longer configured. */
export const openSecret = (seal: Seal, webhook: string, sealed: string): string =>
  seal.open(sealed, placeOf(webhook))

/**
 * Subscribes an address to events. The secret is in the result and nowhere else in clear.
 *
 * @param id becomes the webhook's id
 * @throws Refusal `invalid` for an address nothing may be sent to; `conflict` when there are 20 already.
 */
export async function createWebhook(
  { postgres, seal, config }: Keeping,
  account: string,
  id: string,
  { url, description, events }: { url: string; description: string; events: EventName[] },
): Promise<{ webhook: WebhookRow; secret: string }> {
  const target = targetOf(config, url)
  const secret = mintSecret()
  const sealed = seal.seal(secret, placeOf(id))
  const webhook = { id, account, url: target, description, events, secret: sealed }
  if (!(await postgres.transaction(tx => insertWebhook(tx, webhook, webhooksMax)))) {
    throw new Refusal(
      'conflict',
      `An account has at most ${webhooksMax} webhooks`,
      'Delete one that is not needed any more',
    )
  }
  return { webhook: await webhookOf(postgres.query, account, id), secret }
}

const targetOf = (config: Keeping['config'], url: string): string =>
  requireTarget(url, { loopback: config.webhooksToLoopback }).href

/** @throws Refusal `missing`. */
export async function webhookOf(query: Query, account: string, id: string): Promise<WebhookRow> {
  const webhook = isUuid(id) ? await findWebhook(query, account, id) : undefined
  if (webhook) return webhook
  throw noSuchWebhook()
}

export const noSuchWebhook = (): Refusal =>
  new Refusal('missing', 'No such webhook', 'GET /v1/account/webhooks lists those of the account')

/**
 * Writes what is given. Switched off, what was still to be sent is given up; switched on, it begins anew.
 *
 * @throws Refusal `missing`; `invalid` as `createWebhook`.
 */
export async function changeWebhook(
  { postgres, config }: Keeping,
  account: string,
  id: string,
  { url, ...change }: WebhookChange,
): Promise<WebhookRow> {
  const target = url === undefined ? undefined : targetOf(config, url)
  const { query } = postgres
  const isChanged =
    isUuid(id) && (await updateWebhook(query, account, id, { ...change, url: target }))
  if (!isChanged) throw noSuchWebhook()
  return webhookOf(query, account, id)
}

const graceSeconds = 24 * 3600

/**
 * Gives a webhook another secret. For a day messages are signed with both.
 *
 * @throws Refusal `missing`.
 */
export async function renewSecret(
  { postgres, seal }: Keeping,
  account: string,
  id: string,
): Promise<string> {
  const secret = mintSecret()
  const renewal = { secret: seal.seal(secret, placeOf(id)), graceSeconds }
  if (!isUuid(id) || !(await replaceSecret(postgres.query, account, id, renewal))) {
    throw noSuchWebhook()
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
  const webhook = await activeWebhook(postgres.query, account, id)
  const data = { webhook_id: webhook.id }
  await insertDelivery(postgres.query, { id: delivery, webhook: id, event: testEvent, data })
}

/**
 * Has a message sent again under its id, whatever became of it.
 *
 * @throws Refusal `missing`; `conflict` when the webhook is switched off.
 */
export async function replay(
  { postgres }: { postgres: Postgres },
  account: string,
  id: string,
  delivery: string,
): Promise<DeliveryRow> {
  const webhook = await activeWebhook(postgres.query, account, id)
  const found = isUuid(delivery)
    ? await replayDelivery(postgres.query, webhook.id, delivery)
    : undefined
  if (found) return found
  throw new Refusal('missing', 'No such delivery', 'They are kept for 30 days')
}

async function activeWebhook(query: Query, account: string, id: string): Promise<WebhookRow> {
  const webhook = await webhookOf(query, account, id)
  if (webhook.disabledAt === null) return webhook
  throw new Refusal(
    'conflict',
    'This webhook is switched off',
    'PATCH it with {"active": true} first',
  )
}

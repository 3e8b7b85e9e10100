import type { Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { deliverWebhook } from '#shared/events/webhooks/deliver.ts'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import {
  startWebhookReceiver,
  type WebhookReceiver,
} from '#test/support/doubles/webhook-receiver.ts'

export const webhooksPath = '/v1/account/webhooks'

const allEvents = ['operation.finished', 'reflection.suggested', 'review.waiting', 'key.revoked']

/** Sends every pending message once, regardless of the time of its next attempt. */
export async function deliverPending(backend: Backend): Promise<void> {
  const { rows } = await backend.postgres.query<{ id: string }>(
    `update webhook_deliveries set due_at = now() where state = 'pending' returning id`,
  )
  await Promise.all(rows.map(({ id }) => deliverWebhook(backend, { delivery: id })))
}

/**
 * Subscribes a receiver to events, to all by default.
 *
 * @throws when the API does not answer 201.
 */
export async function subscribe(
  client: TestClient,
  receiver: WebhookReceiver,
  events: readonly string[] = allEvents,
) {
  const { status, body } = await client.post(webhooksPath, { url: receiver.url, events })
  if (status !== 201) throw new Error(`${webhooksPath} answered ${status}`)
  return { id: body.id as string, secret: body.secret as string, at: `${webhooksPath}/${body.id}` }
}

/** A key in a new account, its client, and a receiver subscribed to events. */
export async function buildSubscriber(
  t: Test,
  backend: Backend,
  base: string,
  events?: readonly string[],
) {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const receiver = await startWebhookReceiver(t)
  return { key, client, receiver, ...(await subscribe(client, receiver, events)) }
}

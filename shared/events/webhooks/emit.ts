import type { WebhookEventName } from '#shared/events/webhooks/webhooks.postgres.ts'
import { insertDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/**
 * Writes a message for every active webhook that is subscribed to an event, and sends the jobs that deliver them, in
 * the caller's transaction. The caller leaves out events about the private vaults of members.
 */
export async function emitWebhookEvents(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  events: readonly {
    account: string
    event: WebhookEventName
    /** The `data` of the message: ids, states and counts, never what is remembered. */
    data: object
  }[],
): Promise<void> {
  if (events.length === 0) return
  await sendDeliveryJobs(tx, queue, await insertDeliveries(tx.query, events))
}

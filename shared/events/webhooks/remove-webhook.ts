import { isUuid } from '#shared/core/ids.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  recordWebhookEvent,
  webhookNotFound,
  type WebhookOwner,
} from '#shared/events/webhooks/webhook.ts'
import {
  deleteDeliveries,
  deleteWebhook,
  switchOffWebhooks,
} from '#shared/events/webhooks/webhooks.postgres.ts'

/**
 * Deletes a webhook with its log and its pending messages. The log goes first, in parts: it may have
 * millions. Until it has gone the webhook is there, switched off.
 *
 * @param settle what is to be true with the deletion, in its transaction
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

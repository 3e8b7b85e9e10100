/** What an account can be told. The rows that tell are written by triggers: see migration 0021. */
export type WebhookEventName =
  | 'operation.finished'
  | 'reflection.suggested'
  | 'review.waiting'
  | 'key.revoked'

/** Sent when its owner asks, to whatever is subscribed. */
export const testEvent = 'webhook.test'

/** NOTIFY channel on which new deliveries are announced. */
export const dueChannel = 'webhooks_due'

/** What an account can subscribe to. */
export type WebhookEventName =
  | 'operation.finished'
  | 'reflection.suggested'
  | 'review.waiting'
  | 'key.revoked'

/** Sent on request, to a webhook of any subscription. */
export const testEvent = 'webhook.test'

import type { Webhook, WebhookDelivery } from '#api/contract/generated/types.ts'
import type { DeliveryRow } from '#shared/events/webhooks/deliveries.postgres.ts'
import type { WebhookRow } from '#shared/events/webhooks/webhooks.postgres.ts'

export const presentWebhook = (row: WebhookRow): Webhook => ({
  id: row.id,
  url: row.url,
  description: row.description,
  events: row.events,
  active: row.disabledAt === null,
  disabled_reason: row.disabledReason,
  failing_since: row.failingSince?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

export const presentDelivery = (row: DeliveryRow): WebhookDelivery => ({
  id: row.id,
  type: row.event,
  data: row.data,
  state: row.state,
  next_try: row.state === 'pending' ? row.dueAt.toISOString() : null,
  tries: row.tries.map(({ at, ...tried }) => ({ ...tried, at: new Date(at).toISOString() })),
  created_at: row.createdAt.toISOString(),
})

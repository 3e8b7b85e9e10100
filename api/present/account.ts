import type {
  AccountEvent as Presented,
  Webhook,
  WebhookDelivery,
} from '#api/contract/generated/types.ts'
import type { AccountEvent, RecordedValue } from '#shared/events/account-events.postgres.ts'
import type { Application } from '#shared/access/applications.postgres.ts'
import type { AccountPolicy } from '#shared/accounts/policy.ts'
import type { EffectivePolicy } from '#shared/privacy/apply-redaction.ts'
import type { DeliveryRow } from '#shared/events/webhooks/deliveries.postgres.ts'
import type { WebhookRow } from '#shared/events/webhooks/webhooks.postgres.ts'

export const presentAccountEvent = (event: AccountEvent): Presented => ({
  position: event.position,
  event_id: event.id,
  action: event.action,
  subject: event.subject,
  actor: event.actor,
  created_at: new Date(microsToMs(event.micros)).toISOString(),
  hash: event.hash.toString('hex'),
  ...(typeof event.externalId === 'string' && { external_id: event.externalId }),
  ...(event.change !== null && presentChange(event.change)),
})

function presentChange(change: string): Pick<Presented, 'before' | 'after' | 'org_id'> {
  const [before, after, organization] = JSON.parse(change) as [
    RecordedValue,
    RecordedValue,
    organization?: string,
  ]
  return { before, after, ...(organization !== undefined && { org_id: organization }) }
}

/** Epoch milliseconds of microseconds, which are more than a number holds. */
export const microsToMs = (micros: string): number => Number(BigInt(micros) / 1_000n)

export const presentPolicy = ({ redaction, decidedBy }: EffectivePolicy) => ({
  redaction,
  decided_by: decidedBy,
})

export const presentAccountPolicy = ({
  retentionDays,
  createUsers,
  userLimits,
  traces,
  storage,
  ...policy
}: AccountPolicy) => ({
  ...presentPolicy(policy),
  retention_days: retentionDays,
  create_users: createUsers,
  user_daily_requests: userLimits.requests,
  user_daily_tokens: userLimits.tokens,
  user_monthly_dollars: userLimits.micros && userLimits.micros / 1e6,
  traces: traces.mode,
  trace_days: traces.days,
  verbatim: storage.verbatim,
  tell_absence: storage.tellAbsence,
  keep_files: storage.keepFiles,
  sessions: storage.coreSessions ? ('core' as const) : ('apart' as const),
  store_response: storage.responseWithInput ? ('with_input' as const) : ('always' as const),
})

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

/** A line of an export, before it is written. */
export type TypedLine = { type: string; [field: string]: unknown }

export const presentApplication = (application: Application) => ({
  id: application.id,
  name: application.clientName,
  client_id: application.clientId,
  redirect_host: application.redirectHost,
  scopes: application.scopes,
  external_id: application.externalId,
  created_at: application.createdAt.toISOString(),
  last_used_at: application.lastUsedAt?.toISOString() ?? null,
})

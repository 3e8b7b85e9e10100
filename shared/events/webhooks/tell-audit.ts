import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import {
  nextAuditEvents,
  noteAuditAnswer,
  listAuditSinks,
  type AuditSink,
  type ChainedEvent,
} from '#shared/events/webhooks/audit-sinks.postgres.ts'
import { signingSecrets } from '#shared/events/webhooks/deliver.ts'
import ocsf from '#shared/events/webhooks/ocsf.json' with { type: 'json' }
import type { WebhookSender } from '#shared/events/webhooks/send.ts'
import { openUrl } from '#shared/events/webhooks/webhook.ts'
import type { WebhookEvent } from '#shared/events/webhooks/webhooks.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

type AuditBackend = { postgres: Postgres; seal: Seal; log: Log; webhookSender: WebhookSender }

const pageMax = 100
/** After what a receiver has not taken. */
const retryMs = 10_000

/**
 * Tells webhooks that take it the audit of their account, for most of a minute: another job follows. Each event is sent
 * until the receiver has answered 2xx, and then the next of its chain; its id is the same for every try.
 *
 * @param forMs how long, at least once
 */
export async function tellAudit(
  backend: AuditBackend,
  signal?: AbortSignal,
  forMs = 50_000,
): Promise<void> {
  const until = performance.now() + forMs
  const isOver = (): boolean => signal?.aborted === true || performance.now() >= until
  const waits = new Map<string, number>()
  do {
    const sinks = await listAuditSinks(backend.postgres.query)
    if (sinks.length === 0) return
    const due = sinks.filter(({ webhook }) => (waits.get(webhook) ?? 0) <= performance.now())
    await Promise.all(
      due.map(async sink => {
        const isTaken = await tellSink(backend, sink, signal).catch((err: unknown) => {
          backend.log.warn({ err, webhook: sink.webhook }, 'audit.not-told')
          return false
        })
        waits.set(sink.webhook, isTaken ? 0 : performance.now() + retryMs)
      }),
    )
    if (forMs > 0) await delay(1_000, undefined, signal && { signal }).catch(() => undefined)
  } while (!isOver())
}

/** @returns false once the receiver has not taken an event. */
async function tellSink(
  { postgres: { query }, seal, log, webhookSender }: AuditBackend,
  sink: AuditSink,
  signal?: AbortSignal,
): Promise<boolean> {
  const { webhook, storedUrl } = sink
  const url = openUrl(seal, webhook, storedUrl)
  const secrets = signingSecrets({ seal }, sink)
  const together = url.startsWith('syslog') ? pageMax : 1
  for (;;) {
    const events = await nextAuditEvents(query, webhook, pageMax)
    if (events.length === 0) return true
    for (let from = 0; from < events.length; from += together) {
      const told = events.slice(from, from + together)
      const [first, ...others] = told.map(event => toWebhookEvent(event, sink.account))
      const attempt = await webhookSender.send(
        { url, secrets, events: [first!, ...others] },
        signal,
      )
      const isTaken = attempt.error === null
      if (!isTaken && signal?.aborted) return false
      // The last of each chain.
      const taken = isTaken ? new Map(told.map(event => [event.chain, event])).values() : [null]
      for (const event of taken) await noteAuditAnswer(query, webhook, event)
      if (isTaken) continue
      log.info({ webhook, event: 'audit.event', ...attempt }, 'webhook.failed')
      return false
    }
  }
}

const toWebhookEvent = (event: ChainedEvent, account: string): WebhookEvent => ({
  id: event.id,
  type: 'audit.event',
  timestamp: new Date(event.at).toISOString(),
  data: toOcsf(event, account),
})

const { user: userActivities, entity: entityActivities, types }: Ocsf = ocsf
type Ocsf = {
  user: Record<string, number>
  entity: Record<string, number>
  types: Record<string, { id: number; caption: string } | undefined>
}

/** The event in the form of the Open Cybersecurity Schema Framework. */
export function toOcsf({ action, change, ...event }: ChainedEvent, tenant_uid: string) {
  const { chain: log_name, position: sequence, id: uid, subject, hash } = event
  const [type = '', verb = ''] = action.split('.')
  const isUser = type === 'user'
  const class_uid = isUser ? 3001 : 3004
  const activity_id = (isUser ? userActivities : entityActivities)[verb] ?? 99
  const [before, after, organization] = JSON.parse(change ?? '[]') as unknown[]
  const { id: type_id, caption } = types[type] ?? { id: 99, caption: type }
  const product = { name: 'Memory Vault', vendor_name: 'Memory Vault' }
  const org = organization !== undefined && { org: { uid: organization } }
  return {
    category_uid: 3,
    class_uid,
    activity_id,
    ...(activity_id === 99 && { activity_name: verb }),
    type_uid: class_uid * 100 + activity_id,
    time: event.at,
    severity_id: 1,
    status_id: 1,
    message: action,
    metadata: {
      version: ocsf.version,
      uid,
      event_code: action,
      tenant_uid,
      log_name,
      sequence,
      product,
    },
    actor: { user: { name: event.actor } },
    ...(isUser
      ? { user: { uid: subject, ...org } }
      : { entity: { uid: subject, type_id, type: caption, ...org } }),
    unmapped: { hash, ...(change !== null && { before, after, organization }) },
  }
}

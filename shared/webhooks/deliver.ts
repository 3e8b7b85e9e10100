import {
  claimDueDeliveries,
  nextDeliveryDelay,
  recordAttempt,
  type DueDelivery,
} from '#shared/webhooks/deliveries.postgres.ts'
import { dueChannel } from '#shared/webhooks/event.ts'
import { createWebhookSender, type WebhookSender } from '#shared/webhooks/send.ts'
import { openSecret } from '#shared/webhooks/webhook.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import type { Config } from '#shared/core/config.ts'

type DeliveryBackend = { postgres: Postgres; seal: Seal; log: Log }

/** After the first try; three days in all, as Standard Webhooks suggests. */
const retrySeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const
/** Up to a fifth later, so that what failed together does not come again together. */
const jitter = 0.2
const failingDaysMax = 5
/** Longer than a try takes at most. */
const leaseSeconds = 60

/**
 * Sends every message that is due, once, and writes down how that went.
 *
 * @returns how many were tried.
 * @throws Refusal `unavailable` when the database is out of reach: what was sent may be sent again.
 */
export async function deliverDue(
  backend: DeliveryBackend,
  sender: WebhookSender,
  signal?: AbortSignal,
): Promise<number> {
  const due = await claimDueDeliveries(backend.postgres.query, {
    perWebhook: 5,
    webhooks: 20,
    leaseSeconds,
  })
  await Promise.all(due.map(delivery => deliver(backend, sender, delivery, signal)))
  return due.length
}

async function deliver(
  { postgres, seal, log }: DeliveryBackend,
  sender: WebhookSender,
  delivery: DueDelivery,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { id, webhook, url, event, attempts, secret, formerSecret } = delivery
  const secrets = [secret, ...(formerSecret === null ? [] : [formerSecret])]
  const payload = buildPayload(delivery)
  const signingSecrets = secrets.map(sealed => openSecret(seal, webhook, sealed))
  const attempt = await sender.send({ id, url, secrets: signingSecrets, payload }, signal)
  // This process ends: whoever takes it next sends it again.
  if (attempt.error !== null && signal?.aborted) return
  const retryDelaySeconds = retrySeconds[attempts]
  const disabledReason = await recordAttempt(postgres.query, delivery, {
    attempt,
    retrySeconds:
      retryDelaySeconds === undefined ? null : retryDelaySeconds * (1 + Math.random() * jitter),
    isGone: attempt.status === 410,
    failingDaysMax,
  })
  if (attempt.error !== null) log.info({ webhook, event, attempts, ...attempt }, 'webhook.failed')
  if (disabledReason) log.warn({ webhook, reason: disabledReason }, 'webhook.switched-off')
}

/** The envelope of Standard Webhooks; the same for every try. */
const buildPayload = ({ event, createdAt, data }: DueDelivery): string =>
  JSON.stringify({ type: event, timestamp: createdAt.toISOString(), data })

/** Looked at this often even if nobody says that something is due. */
const pollIntervalMs = 30_000
const pollIntervalMinMs = 250

/**
 * Delivers what becomes due, in this process, until closed: at once when a transaction announces it, and
 * when the next try of something is due. Any number of processes may do so.
 */
export async function startWebhookDelivery(
  backend: DeliveryBackend & { config: Config },
): Promise<{ close(): Promise<void> }> {
  const { postgres, log, config } = backend
  const sender = createWebhookSender({ allowLoopback: config.allowLoopbackWebhooks })
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isWakePending = false

  const run = async (): Promise<void> => {
    let delayMs = pollIntervalMs
    try {
      do {
        isWakePending = false
        while (!closing.signal.aborted && (await deliverDue(backend, sender, closing.signal)) > 0);
      } while (isWakePending && !closing.signal.aborted)
      const next = await nextDeliveryDelay(postgres.query)
      if (next !== null) delayMs = Math.min(pollIntervalMs, Math.max(pollIntervalMinMs, next))
    } catch (error) {
      log.warn({ err: error }, 'webhooks.not-delivered')
    }
    running = undefined
    if (closing.signal.aborted) return
    clearTimeout(timer)
    timer = setTimeout(wake, isWakePending ? 0 : delayMs)
  }
  const wake = (): void => {
    isWakePending = true
    if (!closing.signal.aborted) running ??= run()
  }

  const subscription = await postgres.listen(dueChannel, wake)
  wake()
  return {
    async close() {
      closing.abort()
      clearTimeout(timer)
      await Promise.all([running, subscription.close()])
      await sender.close()
    },
  }
}

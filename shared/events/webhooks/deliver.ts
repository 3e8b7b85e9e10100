import { recordAccountEvent, serviceActor } from '#shared/events/account-events.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { WebhookJob } from '#shared/domain/job-payloads.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import {
  deliveriesWithoutJob,
  findPendingDelivery,
  giveUpDelivery,
  recordAttempt,
  type PendingDelivery,
} from '#shared/events/webhooks/deliveries.postgres.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import type { WebhookSender } from '#shared/events/webhooks/send.ts'
import { openSecret, openUrl } from '#shared/events/webhooks/webhook.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'

type DeliveryBackend = { postgres: Postgres; seal: Seal; log: Log; webhookSender: WebhookSender }

/** After the first try: three days in all, as Standard Webhooks suggests. */
const retrySeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const
/** Up to a fifth later, to spread messages that failed together. */
const jitter = 0.2
const failingDaysMax = 5

/**
 * Sends a message once, records the outcome, and snoozes the job until the next try. A message that is delivered,
 * given up or deleted ends the job; one whose webhook is switched off is given up.
 *
 * @throws Refusal `unavailable` when the database is out of reach: the message may be sent again.
 */
export async function deliverWebhook(
  backend: DeliveryBackend,
  job: WebhookJob,
  signal?: AbortSignal,
): Promise<Snooze | undefined> {
  const { postgres, log, webhookSender } = backend
  const delivery = await findPendingDelivery(postgres.query, job.delivery)
  if (!delivery) return undefined
  // Written by a transaction that was still open when the webhook was switched off.
  if (delivery.isOff) {
    await giveUpDelivery(postgres.query, delivery.id)
    return undefined
  }
  const { id, webhook, storedUrl, event, attempts, dueInSeconds, createdAt, data } = delivery
  if (dueInSeconds > 0) return { snoozeSeconds: dueInSeconds }
  const url = openUrl(backend.seal, webhook, storedUrl)
  const secrets = signingSecrets(backend, delivery)
  const message = { id, type: event, timestamp: createdAt.toISOString(), data }
  const attempt = await webhookSender.send({ url, secrets, events: [message] }, signal)
  // A send that the end of this process cut off does not count as a try.
  if (attempt.error !== null) signal?.throwIfAborted()

  const delaySeconds = retrySeconds[attempts]
  const nextTrySeconds =
    delaySeconds === undefined ? null : delaySeconds * (1 + Math.random() * jitter)
  const outcome = {
    attempt,
    retrySeconds: nextTrySeconds,
    isGone: attempt.status === 410,
    failingDaysMax,
  }
  const { isPending, disabledReason } = await postgres.transaction(async tx => {
    const result = await recordAttempt(tx.query, delivery, outcome)
    if (result.disabledReason) {
      const changedEvent = { account: delivery.account, actor: serviceActor, subject: webhook }
      await recordAccountEvent(tx, { ...changedEvent, action: 'webhook.changed' })
    }
    return result
  })
  if (attempt.error !== null) log.info({ webhook, event, attempts, ...attempt }, 'webhook.failed')
  if (disabledReason) log.warn({ webhook, reason: disabledReason }, 'webhook.switched-off')
  return isPending && nextTrySeconds !== null ? { snoozeSeconds: nextTrySeconds } : undefined
}

export const signingSecrets = (
  { seal }: Pick<DeliveryBackend, 'seal'>,
  { webhook, secret, formerSecret }: Pick<PendingDelivery, 'webhook' | 'secret' | 'formerSecret'>,
): string[] =>
  [secret, formerSecret].flatMap(sealed =>
    sealed === null ? [] : [openSecret(seal, webhook, sealed)],
  )

const unsentMax = 1_000

/**
 * Sends jobs for due messages without one: those of changes made without a queue, such as an edit (`finalizeEdit`) or a
 * cancellation by the operator (`cancelAsOperator`).
 *
 * @returns how many.
 */
export async function sendMissingDeliveryJobs(backend: {
  postgres: Postgres
  queue: Queue
}): Promise<number> {
  return backend.postgres.transaction(async tx => {
    const deliveries = await deliveriesWithoutJob(tx.query, unsentMax)
    await sendDeliveryJobs(tx, backend.queue, deliveries)
    return deliveries.length
  })
}

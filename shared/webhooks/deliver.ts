import {
  claimDue,
  nextDue,
  recordTry,
  type DueDelivery,
} from '#shared/webhooks/deliveries.postgres.ts'
import { dueChannel } from '#shared/webhooks/event.ts'
import { createSender, type Sender } from '#shared/webhooks/send.ts'
import { openSecret } from '#shared/webhooks/webhook.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Log } from '#shared/core/log.ts'
import type { Config } from '#shared/core/config.ts'

type Delivering = { postgres: Postgres; seal: Seal; log: Log }

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
  backend: Delivering,
  sender: Sender,
  signal?: AbortSignal,
): Promise<number> {
  const due = await claimDue(backend.postgres.query, {
    perWebhook: 5,
    webhooks: 20,
    leaseSeconds,
  })
  await Promise.all(due.map(delivery => deliver(backend, sender, delivery, signal)))
  return due.length
}

async function deliver(
  { postgres, seal, log }: Delivering,
  sender: Sender,
  delivery: DueDelivery,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { id, webhook, url, event, attempts, secret, formerSecret } = delivery
  const secrets = [secret, ...(formerSecret === null ? [] : [formerSecret])]
  const payload = payloadOf(delivery)
  const opened = secrets.map(sealed => openSecret(seal, webhook, sealed))
  const tried = await sender.send({ id, url, secrets: opened, payload }, signal)
  // This process ends: whoever takes it next sends it again.
  if (tried.error !== null && signal?.aborted) return
  const pause = retrySeconds[attempts]
  const off = await recordTry(postgres.query, delivery, {
    tried,
    retrySeconds: pause === undefined ? null : pause * (1 + Math.random() * jitter),
    gone: tried.status === 410,
    failingDaysMax,
  })
  if (tried.error !== null) log.info({ webhook, event, attempts, ...tried }, 'webhook.failed')
  if (off) log.warn({ webhook, reason: off }, 'webhook.switched-off')
}

/** The envelope of Standard Webhooks; the same for every try. */
const payloadOf = ({ event, createdAt, data }: DueDelivery): string =>
  JSON.stringify({ type: event, timestamp: createdAt.toISOString(), data })

/** Looked at this often even if nobody says that something is due. */
const lookMs = 30_000
const soonestMs = 250

/**
 * Delivers what becomes due, in this process, until closed: at once when a transaction announces it, and
 * when the next try of something is due. Any number of processes may do so.
 */
export async function watchOutbox(
  backend: Delivering & { config: Config },
): Promise<{ close(): Promise<void> }> {
  const { postgres, log, config } = backend
  const sender = createSender({ loopback: config.webhooksToLoopback })
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let asked = false

  const run = async (): Promise<void> => {
    let pause = lookMs
    try {
      do {
        asked = false
        while (!closing.signal.aborted && (await deliverDue(backend, sender, closing.signal)) > 0);
      } while (asked && !closing.signal.aborted)
      const next = await nextDue(postgres.query)
      if (next !== null) pause = Math.min(lookMs, Math.max(soonestMs, next))
    } catch (error) {
      log.warn({ err: error }, 'webhooks.not-delivered')
    }
    running = undefined
    if (closing.signal.aborted) return
    clearTimeout(timer)
    timer = setTimeout(wake, asked ? 0 : pause)
  }
  const wake = (): void => {
    asked = true
    if (!closing.signal.aborted) running ??= run()
  }

  const listening = await postgres.listen(dueChannel, wake)
  wake()
  return {
    async close() {
      closing.abort()
      clearTimeout(timer)
      await Promise.all([running, listening.close()])
      await sender.close()
    },
  }
}

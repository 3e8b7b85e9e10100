import { Webhook } from 'standardwebhooks'
import type { Agent, request as UndiciRequest } from 'undici'
import {
  publicLookup,
  requirePublicUrl,
  type AddressPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'
import { Refusal } from '#shared/core/errors.ts'

type WebhookMessage = {
  /** The same for every try, so that receivers can drop duplicates. */
  id: string
  url: string
  /** The newest first; all of them sign. */
  secrets: readonly string[]
  payload: string
}

/** How a try ended; `status` is null when there was no response. */
type DeliveryAttempt = { status: number | null; error: string | null; ms: number }

export type WebhookSender = {
  /** Sends a signed message once. Redirects are not followed; only the status of the response counts. */
  send(message: WebhookMessage, signal?: AbortSignal): Promise<DeliveryAttempt>
  close(): Promise<void>
}

const sendTimeouts = { connectMs: 5_000, responseMs: 10_000, totalMs: 15_000 }
/** Read of a response, so that its connection can be used again. */
const responseBytesMax = 64 * 1024

/** Sends to the addresses that `addressPolicy` allows, whatever a name resolves to. */
export function createWebhookSender(
  addressPolicy: AddressPolicy,
  bounds: Partial<typeof sendTimeouts> = {},
): WebhookSender {
  const { connectMs, responseMs, totalMs } = { ...sendTimeouts, ...bounds }
  let client: Promise<{ request: typeof UndiciRequest; dispatcher: Agent }> | undefined
  // Loaded with the first message: web processes never send one.
  const open = async () => {
    const { Agent, request } = await import('undici')
    const dispatcher = new Agent({
      connect: { timeout: connectMs, lookup: publicLookup(addressPolicy) },
      headersTimeout: responseMs,
      bodyTimeout: responseMs,
      keepAliveTimeout: 5_000,
      pipelining: 1,
    })
    return { request, dispatcher }
  }
  return {
    async send({ id, url, secrets, payload }, signal) {
      const { request, dispatcher } = await (client ??= open())
      const startedAt = performance.now()
      const attemptResult = (status: number | null, error: string | null): DeliveryAttempt => ({
        status,
        error,
        ms: Math.round(performance.now() - startedAt),
      })
      try {
        const limit = AbortSignal.timeout(totalMs)
        const { statusCode, body } = await request(requirePublicUrl(url, addressPolicy), {
          method: 'POST',
          dispatcher,
          headers: buildHeaders(id, secrets, payload),
          body: payload,
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
        })
        await body.dump({ limit: responseBytesMax })
        const isAccepted = statusCode >= 200 && statusCode < 300
        return attemptResult(statusCode, isAccepted ? null : 'refused')
      } catch (error) {
        return attemptResult(null, failureReason(error))
      }
    },
    async close() {
      if (client) await (await client).dispatcher.destroy()
    },
  }
}

function buildHeaders(id: string, secrets: readonly string[], payload: string) {
  const at = new Date()
  const signatures = secrets.map(secret => new Webhook(secret).sign(id, at, payload))
  return {
    'content-type': 'application/json',
    'user-agent': 'memory-vault-webhooks',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signatures.join(' '),
  }
}

/** Without the error's message, which may name internal addresses. */
function failureReason(error: unknown): string {
  if (error instanceof Refusal) return 'not a public address'
  const { name = '', code = '' } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || /TIMEOUT|TIMEDOUT/.test(code)) return 'timed out'
  return (
    reasonByCode[code] ?? (/CERT|SSL|TLS|SIGNED/.test(code) ? 'certificate refused' : 'unreachable')
  )
}

const reasonByCode: Record<string, string> = {
  EPRIVATE: 'not a public address',
  ENOTFOUND: 'name not found',
  EAI_AGAIN: 'name not found',
  ECONNREFUSED: 'connection refused',
}

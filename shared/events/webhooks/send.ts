import { Webhook } from 'standardwebhooks'
import type { Agent, request as UndiciRequest } from 'undici'
import { Refusal } from '#shared/core/errors.ts'
import {
  publicLookup,
  requirePublicUrl,
  type AddressPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'

type WebhookMessage = {
  /** The same for every try, so that receivers can drop duplicates. */
  id: string
  url: string
  /** The newest first; all of them sign. */
  secrets: readonly string[]
  payload: string
}

/** `status` is null when there was no response. */
type DeliveryAttempt = { status: number | null; error: string | null; ms: number }

const sendTimeouts = { connectMs: 5_000, responseMs: 10_000, totalMs: 15_000 }
/** Read of a response, so that its connection can be used again. */
const responseBytesMax = 64 * 1024

/** Sends to the addresses that the policy allows, whatever a name resolves to. */
export class WebhookSender {
  readonly #policy: AddressPolicy
  readonly #timeouts: typeof sendTimeouts
  #client: Promise<{ request: typeof UndiciRequest; dispatcher: Agent }> | undefined

  constructor(policy: AddressPolicy, timeouts: Partial<typeof sendTimeouts> = {}) {
    this.#policy = policy
    this.#timeouts = { ...sendTimeouts, ...timeouts }
  }

  /** Sends a signed message once. Redirects are not followed; only the status of the response counts. */
  async send(
    { id, url, secrets, payload }: WebhookMessage,
    signal?: AbortSignal,
  ): Promise<DeliveryAttempt> {
    const { request, dispatcher } = await (this.#client ??= this.#open())
    const startedAt = performance.now()
    const attempt = (status: number | null, error: string | null): DeliveryAttempt => ({
      status,
      error,
      ms: Math.round(performance.now() - startedAt),
    })
    try {
      const limit = AbortSignal.timeout(this.#timeouts.totalMs)
      const { statusCode, body } = await request(requirePublicUrl(url, this.#policy), {
        method: 'POST',
        dispatcher,
        headers: buildHeaders(id, secrets, payload),
        body: payload,
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      })
      await body.dump({ limit: responseBytesMax })
      return attempt(statusCode, statusCode >= 200 && statusCode < 300 ? null : 'refused')
    } catch (error) {
      return attempt(null, failureReason(error))
    }
  }

  async close(): Promise<void> {
    await (await this.#client)?.dispatcher.destroy()
  }

  /** Loads the client with the first message: web processes send none. */
  async #open() {
    const { Agent, request } = await import('undici')
    const { connectMs, responseMs } = this.#timeouts
    const dispatcher = new Agent({
      connect: { timeout: connectMs, lookup: publicLookup(this.#policy) },
      headersTimeout: responseMs,
      bodyTimeout: responseMs,
      keepAliveTimeout: 5_000,
      pipelining: 1,
    })
    return { request, dispatcher }
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

const reasonByCode: Record<string, string> = {
  EPRIVATE: 'not a public address',
  ENOTFOUND: 'name not found',
  EAI_AGAIN: 'name not found',
  ECONNREFUSED: 'connection refused',
}

/** Without the error's message, which may name internal addresses. */
function failureReason(error: unknown): string {
  if (error instanceof Refusal) return 'not a public address'
  const { name = '', code = '' } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || /TIMEOUT|TIMEDOUT/.test(code)) return 'timed out'
  const isTls = /CERT|SSL|TLS|SIGNED/.test(code)
  return reasonByCode[code] ?? (isTls ? 'certificate refused' : 'unreachable')
}

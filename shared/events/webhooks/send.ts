import { Webhook } from 'standardwebhooks'
import type { Agent } from 'undici'
import { Refusal } from '#shared/core/errors.ts'
import { isPartial, toOtlpLogs } from '#shared/events/webhooks/otlp-logs.ts'
import {
  publicLookup,
  requireReceiverUrl,
  toWebUrl,
  type AddressPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'
import { sendSyslog } from '#shared/events/webhooks/syslog.ts'
import type { WebhookEvent } from '#shared/events/webhooks/webhooks.postgres.ts'

type WebhookMessage = {
  url: string
  /** The newest first; all of them sign. */
  secrets: readonly string[]
  /** One; of syslog any number, which are sent together. */
  events: readonly [WebhookEvent, ...WebhookEvent[]]
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
  readonly #agents = new Map<boolean, Promise<Agent>>()

  constructor(policy: AddressPolicy, timeouts: Partial<typeof sendTimeouts> = {}) {
    this.#policy = policy
    this.#timeouts = { ...sendTimeouts, ...timeouts }
  }

  /** Sends a message once. Redirects are not followed; only the status of the response counts. */
  async send(message: WebhookMessage, signal?: AbortSignal): Promise<DeliveryAttempt> {
    const startedAt = performance.now()
    const attempt = (status: number | null, error: string | null): DeliveryAttempt => ({
      status,
      error,
      ms: Math.round(performance.now() - startedAt),
    })
    try {
      const limit = AbortSignal.timeout(this.#timeouts.totalMs)
      const until = signal ? AbortSignal.any([signal, limit]) : limit
      const { url, isListed } = requireReceiverUrl(message.url, this.#policy)
      if (!url.protocol.startsWith('syslog'))
        return attempt(...(await this.#post(url, isListed, message, until)))
      const lookup = isListed ? {} : { lookup: publicLookup(this.#policy) }
      await sendSyslog(url, message.events, { ...lookup, signal: until })
      return attempt(null, null)
    } catch (error) {
      return attempt(null, failureReason(error))
    }
  }

  /** Posts a signed event. */
  async #post(
    url: URL,
    isListed: boolean,
    { secrets, events: [event] }: WebhookMessage,
    signal: AbortSignal,
  ): Promise<[status: number, error: string | null]> {
    const { id, ...envelope } = event
    const isOtlp = url.protocol.startsWith('otlp')
    const body = isOtlp ? toOtlpLogs(event) : JSON.stringify(envelope)
    const { request } = await import('undici')
    const response = await request(toWebUrl(url), {
      method: 'POST',
      dispatcher: await this.#agent(isListed),
      headers: buildHeaders(id, secrets, body),
      body,
      signal,
    })
    let answer = ''
    for await (const text of response.body.setEncoding('utf8'))
      if ((answer += text).length > responseBytesMax) break
    const { statusCode: status } = response
    const isTaken = status >= 200 && status < 300 && !(isOtlp && isPartial(answer))
    return [status, isTaken ? null : 'refused']
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map(async agent => (await agent).destroy()))
  }

  /** Loads the client with the first message: web processes send none. */
  #agent(isListed: boolean): Promise<Agent> {
    const open = async (): Promise<Agent> => {
      const { Agent } = await import('undici')
      const { connectMs, responseMs } = this.#timeouts
      const lookup = isListed ? {} : { lookup: publicLookup(this.#policy) }
      return new Agent({
        connect: { timeout: connectMs, ...lookup },
        headersTimeout: responseMs,
        bodyTimeout: responseMs,
        keepAliveTimeout: 5_000,
        pipelining: 1,
      })
    }
    const agent = this.#agents.get(isListed) ?? open()
    this.#agents.set(isListed, agent)
    return agent
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
  ECLOSED: 'closed early',
}

/** Without the error's message, which may name internal addresses. */
function failureReason(error: unknown): string {
  if (error instanceof Refusal) return 'not a public address'
  const { name = '', code = '' } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || name === 'AbortError' || /TIMEOUT|TIMEDOUT/.test(code))
    return 'timed out'
  const isTls = /CERT|SSL|TLS|SIGNED/.test(code)
  return reasonByCode[code] ?? (isTls ? 'certificate refused' : 'unreachable')
}

import { Webhook } from 'standardwebhooks'
import { Agent, request } from 'undici'
import { reachableLookup, requireTarget, type Reach } from '#shared/webhooks/address.ts'
import { Refusal } from '#shared/core/errors.ts'

type Message = {
  /** The same for every try: whoever is told twice can tell. */
  id: string
  url: string
  /** The newest first; all of them sign. */
  secrets: readonly string[]
  payload: string
}

/** How a try ended; `status` is null when there was no answer. */
type Tried = { status: number | null; error: string | null; ms: number }

export type Sender = {
  /** Sends a signed message once; redirects are not followed, and of the answer only the status counts. */
  send(message: Message, signal?: AbortSignal): Promise<Tried>
  close(): Promise<void>
}

const patience = { connectMs: 5_000, headMs: 10_000, wholeMs: 15_000 }
/** Of an answer, so that its connection can be used again. */
const answerBytesMax = 64 * 1024

/** Connections of webhooks; they reach what `reach` allows, whatever a name resolves to. */
export function createSender(reach: Reach, bounds: Partial<typeof patience> = {}): Sender {
  const { connectMs, headMs, wholeMs } = { ...patience, ...bounds }
  const dispatcher = new Agent({
    connect: { timeout: connectMs, lookup: reachableLookup(reach) },
    headersTimeout: headMs,
    bodyTimeout: headMs,
    keepAliveTimeout: 5_000,
    pipelining: 1,
  })
  return {
    async send({ id, url, secrets, payload }, signal) {
      const begun = performance.now()
      const ended = (status: number | null, error: string | null): Tried => ({
        status,
        error,
        ms: Math.round(performance.now() - begun),
      })
      try {
        const limit = AbortSignal.timeout(wholeMs)
        const { statusCode, body } = await request(requireTarget(url, reach), {
          method: 'POST',
          dispatcher,
          headers: headersOf(id, secrets, payload),
          body: payload,
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
        })
        await body.dump({ limit: answerBytesMax })
        const isTaken = statusCode >= 200 && statusCode < 300
        return ended(statusCode, isTaken ? null : 'refused')
      } catch (error) {
        return ended(null, reasonOf(error))
      }
    },
    close: () => dispatcher.destroy(),
  }
}

function headersOf(id: string, secrets: readonly string[], payload: string) {
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

/** By its kind: texts of errors name addresses of the network this runs in. */
function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return 'not a public address'
  const { name = '', code = '' } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || /TIMEOUT|TIMEDOUT/.test(code)) return 'timed out'
  return reasons[code] ?? (/CERT|SSL|TLS|SIGNED/.test(code) ? 'certificate refused' : 'unreachable')
}

const reasons: Record<string, string> = {
  EPRIVATE: 'not a public address',
  ENOTFOUND: 'name not found',
  EAI_AGAIN: 'name not found',
  ECONNREFUSED: 'connection refused',
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ServiceConnection } from '#scripts/service-connection.ts'
import type {
  CheckedOutBatch,
  CheckoutAnswer,
  CommitAnswer,
  ErrorBody,
  ReflectionEntry,
} from '#api/contract/types.ts'
import { Refusal } from '#shared/core/errors.ts'

export type Batch = CheckedOutBatch
export type CommitEntry = ReflectionEntry

export type CheckoutOptions = { maxTokens?: number; embeddings?: string }

/** The two halves of consolidation, as a client of the service sees them. */
export type ConsolidationClient = {
  /** The next batch of a tier; null when nothing is left. */
  checkOut(tier: 1 | 2, options: CheckoutOptions): Promise<Batch | null>
  /** What was made of a batch; null when it is no longer lent: check out anew. */
  commit(batch: string, entries: readonly CommitEntry[]): Promise<CommitAnswer | null>
}

const answerTimeoutMs = 60_000
const attemptsMax = 6
const retryDelayMs = 1_000
const retryDelayMaxMs = 20_000

/**
 * Speaks to a service with a Memory Key until `signal` says to give up. What can pass (a network that
 * fails, a rate limit, a database that is away) is tried again for about a minute; that is safe: a
 * checkout carries an Idempotency-Key, and a batch is committed once.
 *
 * @throws Refusal in the service's own words when it says no.
 */
export function createConsolidationClient(
  { baseUrl, key }: ServiceConnection,
  signal: AbortSignal,
): ConsolidationClient {
  const post = async (path: string, body: object, idempotencyKey?: string): Promise<HttpReply> => {
    for (let tried = 1; ; tried++) {
      const reply = await sendRequest(`${baseUrl}/v1/memory/consolidate/${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]),
      })
      signal.throwIfAborted()
      if (tried === attemptsMax || !isRetryable(reply, idempotencyKey !== undefined)) return reply
      await delay(retryDelayAfter(tried, reply.retryAfterMs), null, { signal })
    }
  }

  return {
    async checkOut(tier, { maxTokens, embeddings }) {
      const body = {
        tier,
        ...(maxTokens !== undefined && { max_tokens: maxTokens }),
        ...(embeddings !== undefined && { embeddings }),
      }
      const answer = parseAnswer<CheckoutAnswer>(await post('checkout', body, randomUUID()))
      return answer.batch_id === null ? null : answer
    },

    async commit(batch, entries) {
      const reply = await post('commit', { batch_id: batch, entries })
      return reply.status === 404 || reply.status === 409 ? null : parseAnswer<CommitAnswer>(reply)
    },
  }
}

/** Status 0: there was no answer at all. */
type HttpReply = { status: number; text: string; retryAfterMs: number }

async function sendRequest(url: string, request: RequestInit): Promise<HttpReply> {
  try {
    const response = await fetch(url, request)
    const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1_000
    return { status: response.status, text: await response.text(), retryAfterMs }
  } catch (error) {
    const { cause, message } = error as Error
    const why = cause instanceof Error && cause.message ? cause.message : message
    return { status: 0, text: JSON.stringify({ error: `no answer: ${why}` }), retryAfterMs: 0 }
  }
}

/** A request that carries an Idempotency-Key and is told 409 is still running from the time before. */
const isRetryable = ({ status }: HttpReply, isKeyed: boolean): boolean =>
  status === 0 || status === 429 || status >= 500 || (isKeyed && status === 409)

const retryDelayAfter = (tried: number, retryAfterMs: number): number =>
  Math.min(retryDelayMaxMs, Math.max(retryAfterMs, retryDelayMs * 2 ** (tried - 1)))

function parseAnswer<Answer>({ status, text }: HttpReply): Answer {
  let body: Partial<ErrorBody> = {}
  try {
    body = JSON.parse(text) as Partial<ErrorBody>
  } catch {
    // Whoever answers without JSON is not this service; the status says enough.
  }
  if (status === 200 && Object.keys(body).length > 0) return body as Answer
  throw new Refusal(
    status === 0 ? 'unavailable' : 'upstream',
    `The service says ${status || 'nothing'}: ${body.error ?? text.slice(0, 200)}`,
    body.hint,
  )
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { credentialHeaders, type ServiceConnection } from '#scripts/service-connection.ts'
import type {
  CheckedOutBatch,
  CheckoutAnswer,
  CommitAnswer,
  ErrorBody,
  ReflectionEntry,
} from '#api/contract/generated/types.ts'
import { Refusal } from '#shared/core/errors.ts'

export type Batch = CheckedOutBatch
export type CommitEntry = ReflectionEntry

export type CheckoutOptions = { maxTokens?: number; embeddings?: string }

/** Checkout and commit of batches over HTTP. */
export type ConsolidationClient = {
  /** The next batch of a tier; null when nothing is left. */
  checkOut(tier: 1 | 2, options: CheckoutOptions): Promise<Batch | null>
  /** Commits the reflections of a batch. @returns null when the lease of the batch has expired. */
  commit(batch: string, entries: readonly CommitEntry[]): Promise<CommitAnswer | null>
}

const answerTimeoutMs = 60_000
const attemptsMax = 6
const retryDelayMs = 1_000
const retryDelayMaxMs = 20_000

/**
 * Creates a client that works until `signal` aborts. It repeats a request for about a minute after a
 * network error, a rate limit or a 5xx. That is safe: a checkout has an Idempotency-Key, and a batch
 * is committed once.
 *
 * @throws Refusal with the error of the service when it refuses a request.
 */
export function createConsolidationClient(
  connection: ServiceConnection,
  signal: AbortSignal,
): ConsolidationClient {
  const post = async (path: string, body: object, idempotencyKey?: string): Promise<HttpReply> => {
    for (let attempt = 1; ; attempt++) {
      const reply = await sendRequest(`${connection.baseUrl}/v1/memory/consolidate/${path}`, {
        method: 'POST',
        headers: {
          ...credentialHeaders(connection),
          'content-type': 'application/json',
          ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]),
      })
      signal.throwIfAborted()
      if (attempt === attemptsMax || !isRetryable(reply, idempotencyKey !== undefined)) return reply
      await delay(retryDelayAfter(attempt, reply.retryAfterMs), null, { signal })
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

/** Status 0: no answer. */
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

/** 409 for a request with an Idempotency-Key: the previous attempt is still running. */
const isRetryable = ({ status }: HttpReply, isKeyed: boolean): boolean =>
  status === 0 || status === 429 || status >= 500 || (isKeyed && status === 409)

const retryDelayAfter = (attempt: number, retryAfterMs: number): number =>
  Math.min(retryDelayMaxMs, Math.max(retryAfterMs, retryDelayMs * 2 ** (attempt - 1)))

function parseAnswer<Answer>({ status, text }: HttpReply): Answer {
  let body: Partial<ErrorBody> = {}
  try {
    body = JSON.parse(text) as Partial<ErrorBody>
  } catch {
    // The answer is not JSON, so it does not come from this service; the status is reported.
  }
  if (status === 200 && Object.keys(body).length > 0) return body as Answer
  throw new Refusal(
    status === 0 ? 'unavailable' : 'upstream',
    `The service says ${status || 'nothing'}: ${body.error ?? text.slice(0, 200)}`,
    body.hint,
  )
}

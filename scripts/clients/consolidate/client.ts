import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { vaultClient, VaultError } from '#api/client/client.ts'
import { toRefusal, type ServiceConnection } from '#scripts/service-connection.ts'
import type {
  CheckedOutBatch,
  CheckoutBody,
  CommitAnswer,
  ReflectionEntry,
} from '#api/contract/generated/types.ts'

export type Batch = CheckedOutBatch
export type CommitEntry = ReflectionEntry
export type CheckoutOptions = Pick<CheckoutBody, 'max_tokens' | 'embeddings'>

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
 * Creates a client that works until `signal` aborts. It repeats a request for about a minute after a network error,
 * a rate limit or a 5xx. That is safe: a checkout has an Idempotency-Key, and a batch is committed once.
 *
 * @throws Refusal with the error of the service when it refuses a request.
 */
export function createConsolidationClient(
  { baseUrl, key, ...user }: ServiceConnection,
  signal: AbortSignal,
): ConsolidationClient {
  const { call } = vaultClient(baseUrl, key, user)
  return {
    async checkOut(tier, options) {
      const request = { headers: { 'idempotency-key': randomUUID() }, body: { tier, ...options } }
      const answer = await repeat(
        timeout => call('POST /v1/memory/consolidate/checkout', request, { signal: timeout }),
        // The attempt before is still running.
        409,
      )
      return answer.batch_id === null ? null : answer
    },
    commit: (batch_id, entries) =>
      repeat(timeout =>
        call(
          'POST /v1/memory/consolidate/commit',
          { body: { batch_id, entries: [...entries] } },
          { signal: timeout },
        ).catch((error: unknown) => {
          if (error instanceof VaultError && [404, 409].includes(error.status)) return null
          throw error
        }),
      ),
  }

  async function repeat<Answer>(
    attempt: (timeout: AbortSignal) => Promise<Answer>,
    ...alsoRetryable: number[]
  ): Promise<Answer> {
    for (let count = 1; ; count++) {
      try {
        return await attempt(AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]))
      } catch (error) {
        signal.throwIfAborted()
        const { status = 503, retryAfter = 0 } = error instanceof VaultError ? error : {}
        const isRetryable = status === 429 || status >= 500 || alsoRetryable.includes(status)
        if (count === attemptsMax || !isRetryable) throw toRefusal(error)
        const delayMs = Math.max(retryAfter * 1_000, retryDelayMs * 2 ** (count - 1))
        await delay(Math.min(retryDelayMaxMs, delayMs), null, { signal })
      }
    }
  }
}

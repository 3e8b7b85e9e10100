import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/** The embedding model of a call; not `ready` when its provider does not answer. */
export type EmbeddingSpace = { model: string; ready: boolean }

/**
 * The embedding model of a call. When its provider is unreachable nothing is recalled, and the exchange is stored later.
 *
 * @throws Refusal `invalid` when this service has no such model.
 */
export async function resolveEmbeddingSpace(
  backend: Pick<Backend, 'config' | 'embedders'>,
  requested: string | undefined,
): Promise<EmbeddingSpace> {
  const { embedders } = backend
  const model = requested ?? embedders.defaultModel
  if (model === embedders.defaultModel) return { model, ready: true }
  try {
    const breaker = embedders.breakerOf(model)
    if (breaker && breaker.state !== 'closed') return { model, ready: false }
    const opening = withRecallTimeout(backend, embedders.get(model), () => breaker?.failed())
    return { model: (await opening).model, ready: true }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') throw error
    return { model, ready: false }
  }
}

/** Waits `RECALL_TIMEOUT_MS` at most. @throws what the work throws, and an error when it takes longer */
export const withRecallTimeout = <Result>(
  { config: { recallTimeoutMs } }: Pick<Backend, 'config'>,
  work: Promise<Result>,
  onTimeout: () => void,
): Promise<Result> =>
  withTimeout(work, recallTimeoutMs, () => {
    onTimeout()
    throw new Error(`not within ${recallTimeoutMs} ms`)
  })

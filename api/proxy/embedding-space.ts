import { withRecallTimeout } from '#api/proxy/recall-timeout.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The embedding model of a call; not `ready` when its provider does not answer. */
export type EmbeddingSpace = { model: string; ready: boolean }

/**
 * The embedding model of a call. When its provider is unreachable nothing is recalled, and the exchange
 * is stored later.
 *
 * @throws Refusal `invalid` when this service has no such model.
 */
export async function resolveEmbeddingSpace(
  backend: Pick<Backend, 'config' | 'embedders'>,
  requestedModel: string | undefined,
): Promise<EmbeddingSpace> {
  const { embedders } = backend
  if (requestedModel === undefined || requestedModel === embedders.defaultModel) {
    return { model: embedders.defaultModel, ready: true }
  }
  try {
    const breaker = embedders.breakerOf(requestedModel)
    if (breaker && breaker.state !== 'closed') return { model: requestedModel, ready: false }
    const opened = withRecallTimeout(backend, embedders.get(requestedModel), () =>
      breaker?.failed(),
    )
    return { model: (await opened).model, ready: true }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') throw error
    return { model: requestedModel, ready: false }
  }
}

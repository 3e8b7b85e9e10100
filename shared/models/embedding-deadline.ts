import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/** Longest that a request waits for an embedding model in all, the model's very first call included. */
export const embeddingTimeoutMs = 7_500

/** @throws Refusal `upstream` when the work of an embedding model is not done within `ms`. */
export const withEmbeddingTimeout = <Result>(
  work: Promise<Result>,
  model: string,
  ms = embeddingTimeoutMs,
): Promise<Result> =>
  withTimeout(work, Math.max(0, ms), () => {
    throw new Refusal(
      'upstream',
      `The embedding model ${model} did not answer in time`,
      'Try again; if it lasts, the operator should check the provider and its key',
    )
  })

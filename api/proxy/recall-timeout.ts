import type { Backend } from '#shared/backend.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/**
 * Waits for a step of the recall as long as `RECALL_TIMEOUT_MS` says.
 *
 * @throws what the work throws, and an error when it takes longer
 */
export const withRecallTimeout = <Result>(
  { config: { recallTimeoutMs } }: Pick<Backend, 'config'>,
  work: Promise<Result>,
  onTimeout: () => void,
): Promise<Result> =>
  withTimeout(work, recallTimeoutMs, () => {
    onTimeout()
    throw new Error(`not within ${recallTimeoutMs} ms`)
  })

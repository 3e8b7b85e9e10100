import { call, UserError } from '#api/console/app/api-call.ts'
import { delay } from '#api/console/app/delay.ts'

const pollIntervalMs = 400

/**
 * Polls an operation until it has finished.
 *
 * @param onShare is called with how much of it is done, from 0 to 1
 * @returns the body of its outcome
 * @throws UserError when it failed or was cancelled
 */
export async function pollOperation<Outcome>(
  id: string,
  onShare: (share: number) => void,
): Promise<Outcome> {
  for (;;) {
    const { state, progress, outcome } = await call('GET /v1/operations/:id', { params: { id } })
    onShare(progress.total > 0 ? progress.done / progress.total : 0)
    if (state === 'cancelled') throw new UserError('It was cancelled')
    if (outcome && outcome.status < 300) return outcome.body as Outcome
    if (outcome) throw new UserError((outcome.body as { error?: string }).error ?? 'It failed')
    await delay(pollIntervalMs)
  }
}

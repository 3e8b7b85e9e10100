import type { Backend } from '#shared/backend.ts'
import { findTurn } from '#shared/org/org-turns.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

type PassName = 'org-extract' | 'org-tag' | 'org-reconcile'

/**
 * Makes one pass over each turn of a batch. Each by itself: one whose model fails holds up no other. One
 * that fails since its organization or member was removed meanwhile is done: nothing is left to do.
 */
export const runPass = <Name extends PassName>(
  backend: Backend,
  name: Name,
  batch: readonly Job<Name>[],
  pass: (backend: Backend, data: Job<Name>['data'], signal: AbortSignal) => Promise<void>,
): Promise<JobOutcome[]> =>
  Promise.all(
    batch.map(async ({ id, data, signal, isLastTry }): Promise<JobOutcome> => {
      const { turn, org } = data
      try {
        await pass(backend, data, signal)
      } catch (error) {
        if (!(await isTurnGone(backend, turn))) {
          backend.log[isLastTry ? 'error' : 'warn'](
            { err: error, turn, org, last: isLastTry },
            `${name}.failed`,
          )
          return { id, done: false, error: (error as Error).message }
        }
      }
      return { id, done: true }
    }),
  )

/** A turn goes with its organization, and with its member. While nobody can say it counts as there. */
const isTurnGone = async ({ postgres }: Backend, turn: string): Promise<boolean> =>
  findTurn(postgres.query, turn).then(
    row => row === undefined,
    () => false,
  )

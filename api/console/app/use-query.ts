import { useCallback, useEffect, useState } from 'preact/hooks'
import { toFault, type Fault } from '#api/console/app/api-call.ts'

export type QueryState<Answer> = {
  /** The latest answer; it stays while a newer one loads. */
  answer: Answer | undefined
  fault: Fault | undefined
  isLoading: boolean
  /** Loads the answer again. */
  refetch: () => void
  /** Updates the answer after a change at the service. */
  update: (update: (answer: Answer) => Answer) => void
}

/**
 * Loads when the view is mounted and whenever a dependency changes; outdated answers are dropped.
 *
 * @param fetchAnswer undefined loads nothing
 */
export function useQuery<Answer>(
  fetchAnswer: ((signal: AbortSignal) => Promise<Answer>) | undefined,
  dependencies: readonly unknown[],
): QueryState<Answer> {
  const [state, setState] = useState<Omit<QueryState<Answer>, 'refetch' | 'update'>>({
    answer: undefined,
    fault: undefined,
    isLoading: fetchAnswer !== undefined,
  })
  const [fetchCount, setFetchCount] = useState(0)
  useEffect(() => {
    if (!fetchAnswer) return undefined
    const controller = new AbortController()
    setState(({ answer }) => ({ answer, fault: undefined, isLoading: true }))
    fetchAnswer(controller.signal).then(
      answer =>
        controller.signal.aborted || setState({ answer, fault: undefined, isLoading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return
        setState(({ answer }) => ({ answer, fault: toFault(error), isLoading: false }))
      },
    )
    return () => controller.abort()
  }, [...dependencies, fetchCount])
  return {
    ...state,
    refetch: useCallback(() => setFetchCount(fetchCount => fetchCount + 1), []),
    update: update =>
      setState(({ answer, ...rest }) => ({
        ...rest,
        answer: answer === undefined ? undefined : update(answer),
      })),
  }
}

export type ActionState = {
  isRunning: boolean
  fault: Fault | undefined
  /** Runs an action, one at a time; a failure goes to `fault`. @returns whether it succeeded. */
  run: (what: () => Promise<void>) => Promise<boolean>
  clearFault: () => void
}

/** The state of an action of the user. */
export function useAction(): ActionState {
  const [busy, setBusy] = useState(false)
  const [fault, setFault] = useState<Fault>()
  const run = async (what: () => Promise<void>): Promise<boolean> => {
    if (busy) return false
    setBusy(true)
    setFault(undefined)
    try {
      await what()
      return true
    } catch (error) {
      setFault(toFault(error))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { isRunning: busy, fault, run, clearFault: () => setFault(undefined) }
}

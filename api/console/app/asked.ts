import { useCallback, useEffect, useState } from 'preact/hooks'
import { faultOf, type Fault } from '#api/console/app/call.ts'

export type Asked<Answer> = {
  /** The latest answer; stays while a newer one is waited for. */
  answer: Answer | undefined
  fault: Fault | undefined
  waiting: boolean
  /** Asks again. */
  again: () => void
}

/**
 * Asks when the view appears and whenever something in `given` changes; what is outdated is dropped.
 *
 * @param ask undefined asks nothing
 */
export function useAsked<Answer>(
  ask: ((signal: AbortSignal) => Promise<Answer>) | undefined,
  given: readonly unknown[],
): Asked<Answer> {
  const [state, setState] = useState<Omit<Asked<Answer>, 'again'>>({
    answer: undefined,
    fault: undefined,
    waiting: ask !== undefined,
  })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    if (!ask) return undefined
    const gone = new AbortController()
    setState(({ answer }) => ({ answer, fault: undefined, waiting: true }))
    ask(gone.signal).then(
      answer => gone.signal.aborted || setState({ answer, fault: undefined, waiting: false }),
      (error: unknown) => {
        if (gone.signal.aborted) return
        setState(({ answer }) => ({ answer, fault: faultOf(error), waiting: false }))
      },
    )
    return () => gone.abort()
  }, [...given, turn])
  return { ...state, again: useCallback(() => setTurn(turn => turn + 1), []) }
}

export type Doing = {
  busy: boolean
  fault: Fault | undefined
  /** Does something once at a time; a fault is kept for showing. @returns whether it was done. */
  run: (what: () => Promise<void>) => Promise<boolean>
  clear: () => void
}

/** Something the user does, with its waiting and its fault. */
export function useDoing(): Doing {
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
      setFault(faultOf(error))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { busy, fault, run, clear: () => setFault(undefined) }
}

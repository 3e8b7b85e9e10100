import { useLayoutEffect, useState } from 'preact/hooks'
import { VaultError } from '#api/client/client.ts'
import { toFault, type Fault } from '#api/console/app/api-call.ts'
import { currentCredential, onCredential, setCredential } from '#api/console/app/credential.ts'
import type { FoundLines } from '#api/console/app/vault/upload/read-files.ts'
import {
  formatLeft,
  newState,
  sumTotals,
  timeLeft,
  type UploadTotals,
} from '#api/import/send/progress.ts'
import { partLinesMax, sendParts } from '#api/import/send/send-parts.ts'
import { uploadClient } from '#api/import/send/upload-part.ts'
import { Refusal } from '#shared/core/errors.ts'

/** An upload of this tab. It goes on while other pages are shown. */
export type Sending = {
  found: FoundLines
  state: 'sending' | 'stopped' | 'done'
  /** 0 to 1. */
  share: number
  /** `3:05 left`; empty where it is not known. */
  left: string
  totals: UploadTotals
  /** What it waits for. */
  note: string | undefined
  fault: Fault | undefined
  stop(): void
  /** Goes on where it stopped. */
  resume(): void
}

let current: Sending | undefined
const listeners = new Set<(sending: Sending | undefined) => void>()

function set(sending: Sending | undefined): void {
  current = sending
  for (const listener of listeners) listener(sending)
}

export function useSending(): Sending | undefined {
  const [sending, setSending] = useState(current)
  useLayoutEffect(() => {
    setSending(current)
    listeners.add(setSending)
    return () => void listeners.delete(setSending)
  }, [])
  return sending
}

/** Forgets an upload that has ended. */
export const forgetSending = (): void => set(undefined)

// The next credential must not see it, nor go on with it.
onCredential(() => {
  if (currentCredential()?.key === keyOfUpload) return
  current?.stop()
  set(undefined)
})
let keyOfUpload: string | undefined

/** Sends what was found, in parts. @param session empty: the core vault */
export function startSending(found: FoundLines, session: string): void {
  const { key } = currentCredential()!
  keyOfUpload = key
  const client = uploadClient(location.origin, key)
  const states = found.sets.map(() => newState(''))
  const bytes = found.sets.reduce((sum, set) => sum + set.bytes, 0)
  let stop = new AbortController()

  const change = (changed: Partial<Sending>): void => {
    if (current?.found === found) set({ ...current, ...changed })
  }
  const run = async (): Promise<void> => {
    stop = new AbortController()
    const { signal } = stop
    const secondsLeft = timeLeft()
    change({ state: 'sending', note: undefined, fault: undefined })
    try {
      for (const [index, { kind, bytes: size, open }] of found.sets.entries()) {
        const before = found.sets.slice(0, index).reduce((sum, set) => sum + set.bytes, 0)
        const progress = ({ share }: { share: number | null }): void => {
          const ofAll = (before + (share ?? 0) * size) / Math.max(1, bytes)
          const totals = sumTotals(states.map(state => state.totals))
          change({ share: ofAll, left: formatLeft(secondsLeft(ofAll)), totals, note: undefined })
        }
        const target = {
          client,
          kind,
          session: kind === 'upload' && session !== '' ? session : undefined,
          onConflict: 'skip',
          partLines: partLinesMax,
        } as const
        const state = states[index]!
        await sendParts(
          target,
          { source: open(state.offset), state, size },
          { display: { progress, partDone: progress, note: note => change({ note }) }, signal },
        )
      }
      change({ state: 'done', share: 1, note: undefined })
    } catch (error) {
      const { cause } = error as Error
      if (cause instanceof VaultError && cause.status === 401 && currentCredential()?.key === key)
        setCredential(null, 'The credential is no longer valid.')
      change({
        state: 'stopped',
        note: undefined,
        fault: signal.aborted ? undefined : faultOf(error),
      })
    }
  }
  set({
    found,
    state: 'sending',
    share: 0,
    left: '',
    totals: newState('').totals,
    note: undefined,
    fault: undefined,
    stop: () => stop.abort(),
    resume: () => void run(),
  })
  void run()
}

function faultOf(error: unknown): Fault {
  if (error instanceof Refusal) return toFault(error.cause ?? error)
  const message = 'The file can no longer be read: it was moved or changed'
  return error instanceof DOMException
    ? { message, hint: 'Choose it again: what is stored already is not stored twice.' }
    : toFault(error)
}

addEventListener('beforeunload', event => {
  if (current?.state === 'sending') event.preventDefault()
})

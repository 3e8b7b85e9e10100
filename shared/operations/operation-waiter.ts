import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  settledChannel,
  findOperationState,
  type OperationState,
} from '#shared/operations/operations.postgres.ts'

export type OperationWaiter = {
  /**
   * Waits until an operation of the account has ended.
   *
   * @returns its state then, or `accepted` or `running` when `withinMs` passed first.
   */
  waitUntilSettled(account: string, id: string, withinMs: number): Promise<OperationState>
  close(): Promise<void>
}

/** The state is also read at this interval: a reconnecting listener can miss a notification. */
const pollIntervalMs = 1_000

/** Waits for operations by NOTIFY; the listening connection opens with the first wait. */
export function createOperationWaiter(postgres: Postgres): OperationWaiter {
  const callbacksById = new Map<string, Set<() => void>>()
  let subscription: Promise<{ close(): Promise<void> }> | null = null

  const listen = async (): Promise<void> => {
    subscription ??= postgres.listen(settledChannel, id =>
      callbacksById.get(id)?.forEach(callback => callback()),
    )
    await subscription.catch((error: unknown) => {
      subscription = null
      throw error
    })
  }

  return {
    async waitUntilSettled(account, id, withinMs) {
      const until = performance.now() + withinMs
      await listen()
      for (;;) {
        // Listens before it reads: a notification between the two is not missed.
        const notification = nextNotification(
          callbacksById,
          id,
          Math.min(pollIntervalMs, Math.max(0, until - performance.now())),
        )
        const state = (await findOperationState(postgres.query, account, id)) ?? 'cancelled'
        const settled = state !== 'accepted' && state !== 'running'
        if (settled || performance.now() >= until) {
          notification.stop()
          return state
        }
        await notification.arrived
      }
    },

    async close() {
      await (await subscription)?.close()
    },
  }
}

function nextNotification(
  callbacksById: Map<string, Set<() => void>>,
  id: string,
  withinMs: number,
) {
  const { promise: notified, resolve } = Promise.withResolvers<void>()
  const callbacks = callbacksById.get(id) ?? new Set()
  callbacksById.set(id, callbacks.add(resolve))
  const stop = () => {
    clearTimeout(timer)
    callbacks.delete(resolve)
    if (callbacks.size === 0) callbacksById.delete(id)
    resolve()
  }
  const timer = setTimeout(stop, withinMs)
  return { arrived: notified.then(stop), stop }
}

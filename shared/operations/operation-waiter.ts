import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  settledChannel,
  findOperationState,
  type OperationState,
} from '#shared/operations/operations.postgres.ts'

/** The state is also read at this interval: a reconnecting listener can miss a notification. */
const pollIntervalMs = 1_000

/** Waits for operations by NOTIFY; the listening connection opens with the first wait. */
export class OperationWaiter {
  readonly #postgres: Postgres
  readonly #callbacksById = new Map<string, Set<() => void>>()
  #subscription: Promise<{ close(): Promise<void> }> | undefined

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /**
   * Waits until an operation of the account has ended.
   *
   * @returns its state then, or `accepted` or `running` when `withinMs` passed first.
   */
  async waitUntilSettled(account: string, id: string, withinMs: number): Promise<OperationState> {
    const until = performance.now() + withinMs
    await this.#listen()
    for (;;) {
      // Listens before it reads: a notification between the two is not missed.
      const notification = nextNotification(
        this.#callbacksById,
        id,
        Math.min(pollIntervalMs, Math.max(0, until - performance.now())),
      )
      const { query } = this.#postgres
      const state = (await findOperationState(query, account, id)) ?? 'cancelled'
      const settled = state !== 'accepted' && state !== 'running'
      if (settled || performance.now() >= until) {
        notification.stop()
        return state
      }
      await notification.arrived
    }
  }

  async close(): Promise<void> {
    await (await this.#subscription)?.close()
  }

  async #listen(): Promise<void> {
    this.#subscription ??= this.#postgres.listen(settledChannel, id =>
      this.#callbacksById.get(id)?.forEach(callback => callback()),
    )
    await this.#subscription.catch((error: unknown) => {
      this.#subscription = undefined
      throw error
    })
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

import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  settledChannel,
  stateOf,
  type OperationState,
} from '#shared/operations/operations.postgres.ts'

export type AwaitOperation = {
  /**
   * Waits until an operation of the account is settled.
   *
   * @returns its state then, or `accepted` or `running` when `withinMs` went by first.
   */
  settled(account: string, id: string, withinMs: number): Promise<OperationState>
  close(): Promise<void>
}

/** Should a notification be lost (a reconnecting listener), the state is read this often anyway. */
const lookAgainMs = 1_000

/** Waits for operations by NOTIFY; the listening connection opens with the first wait. */
export function createAwait(postgres: Postgres): AwaitOperation {
  const hearing = new Map<string, Set<() => void>>()
  let listening: Promise<{ close(): Promise<void> }> | null = null

  const listen = async (): Promise<void> => {
    listening ??= postgres.listen(settledChannel, id => hearing.get(id)?.forEach(hear => hear()))
    await listening.catch((error: unknown) => {
      listening = null
      throw error
    })
  }

  return {
    async settled(account, id, withinMs) {
      const until = Date.now() + withinMs
      await listen()
      for (;;) {
        // Heard before read: a notification between the two is not missed.
        const news = nextNews(hearing, id, Math.min(lookAgainMs, Math.max(0, until - Date.now())))
        const state = (await stateOf(postgres.query, account, id)) ?? 'cancelled'
        const settled = state !== 'accepted' && state !== 'running'
        if (settled || Date.now() >= until) {
          news.stop()
          return state
        }
        await news.heard
      }
    },

    async close() {
      await (await listening)?.close()
    },
  }
}

function nextNews(hearing: Map<string, Set<() => void>>, id: string, withinMs: number) {
  const { promise: heard, resolve } = Promise.withResolvers<void>()
  const hears = hearing.get(id) ?? new Set()
  hearing.set(id, hears.add(resolve))
  const stop = () => {
    clearTimeout(timer)
    hears.delete(resolve)
    if (hears.size === 0) hearing.delete(id)
    resolve()
  }
  const timer = setTimeout(stop, withinMs)
  return { heard: heard.then(stop), stop }
}

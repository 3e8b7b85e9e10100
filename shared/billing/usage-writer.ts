import { insertBills, type UsageEvent } from '#shared/billing/bill.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** More bills wait only when the database was out of reach for long; further ones are dropped and counted. */
const waitingMax = 10_000

/** Data exceptions, broken constraints and exceeded limits of rows: the same bill fails again. */
const refusedCodes = /^(22|23|54)/

/** From one statement to the next: many short calls in a row share one. */
const intervalMs = 20
const retryMs = 1_000

/**
 * Writes the bills of reads. One statement runs at a time and writes all bills that arrived since the one before, at
 * most every 20 ms; a bill that comes alone is sent to the database right after the response was sent to the client.
 * A bill that the database refuses, for a number out of range, is dropped; the others of its statement are written.
 */
export class UsageWriter {
  readonly #postgres: Postgres
  readonly #log: Log
  #waiting: UsageEvent[] = []
  #isWriting = false
  #dropped = 0
  #lastWriteAt = -Infinity
  #flushes = 0
  #endPause = (): void => {}
  #isInserting = false
  #inserted = Promise.withResolvers<void>()

  constructor(postgres: Postgres, log: Log) {
    this.#postgres = postgres
    this.#log = log
  }

  /** Writes the bill of a read; the response does not wait for it. */
  record(event: UsageEvent): void {
    this.#waiting.push(event)
    if (!this.#isWriting) void this.#write()
  }

  /** Resolves when everything recorded before is written or dropped. */
  async flush(): Promise<void> {
    this.#flushes++
    this.#endPause()
    // The running statement may lack some of the events; the next one has them all.
    const isRunning = this.#isInserting
    if (this.#isWriting) await this.#inserted.promise
    if (this.#isWriting && isRunning) await this.#inserted.promise
    this.#flushes--
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      await this.#pause()
      this.#lastWriteAt = performance.now()
      const events = this.#waiting
      this.#waiting = []
      this.#isInserting = true
      const unwritten = await this.#insert(events)
      this.#isInserting = false
      if (unwritten.length === 0) {
        this.#inserted.resolve()
        this.#inserted = Promise.withResolvers()
        continue
      }
      const room = Math.max(0, waitingMax - this.#waiting.length)
      this.#noteDropped(Math.max(0, unwritten.length - room))
      this.#waiting = [...unwritten.slice(0, room), ...this.#waiting]
      await new Promise(resolve => setTimeout(resolve, retryMs))
    }
    this.#isWriting = false
  }

  async #pause(): Promise<void> {
    // After this turn the response is written to its socket.
    await new Promise(setImmediate)
    const ms = this.#lastWriteAt + intervalMs - performance.now()
    if (ms <= 0 || this.#flushes > 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** @returns those that are to be tried again. */
  async #insert(events: readonly UsageEvent[]): Promise<readonly UsageEvent[]> {
    try {
      await insertBills(this.#postgres, events)
      return []
    } catch (error) {
      if (!refusedCodes.test(String((error as { code?: unknown }).code))) {
        this.#log.warn({ err: error, events: events.length }, 'usage.delayed')
        return events
      }
      if (events.length === 1) {
        this.#noteDropped(1, error)
        return []
      }
      const half = events.length >> 1
      const first = await this.#insert(events.slice(0, half))
      return [...first, ...(await this.#insert(events.slice(half)))]
    }
  }

  #noteDropped(events: number, error?: unknown): void {
    if (events === 0) return
    this.#dropped += events
    const cause = error !== undefined && { err: error }
    this.#log.error({ dropped: this.#dropped, ...cause }, 'usage.dropped')
  }
}

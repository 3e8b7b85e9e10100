import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  saveCallTraces,
  type EndedCall,
  type NewCallTrace,
} from '#shared/vault/read/traces/call-traces.postgres.ts'

/** From the first entry to the statement that writes it: a statement for each search took a tenth of its CPU. */
const gatherMs = 200
const batchMax = 100
/** More entries wait only while the database is slow; further ones are dropped. */
const waitingMax = 2_000

/** Writes traces that no answer waits for. One that cannot be written is dropped, and the log says so. */
export class CallLog {
  readonly #postgres: Pick<Postgres, 'query'>
  readonly #log: Log
  #waiting: ({ build: () => Promise<NewCallTrace> } | EndedCall)[] = []
  #timer: NodeJS.Timeout | undefined
  /** One statement at a time; never rejects. */
  #writing: Promise<void> | undefined

  constructor(postgres: Pick<Postgres, 'query'>, log: Log) {
    this.#postgres = postgres
    this.#log = log
  }

  /** @param build is called after the answer was sent */
  record(build: () => Promise<NewCallTrace>): void {
    this.#add({ build })
  }

  /** Notes how a call ended whose trace is stored. */
  end(call: EndedCall): void {
    this.#add(call)
  }

  /** Resolves when everything recorded before is written or dropped. */
  async settled(): Promise<void> {
    // The statement under way may lack some of it; the next one has the rest.
    await this.#writing
    await this.#write()
  }

  #add(entry: { build: () => Promise<NewCallTrace> } | EndedCall): void {
    if (this.#waiting.length >= waitingMax) return this.#noteDropped(new Error('too many wait'))
    this.#waiting.push(entry)
    if (this.#waiting.length >= batchMax) void this.#write()
    else this.#timer ??= setTimeout(() => void this.#write(), gatherMs)
  }

  #write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#writeWaiting().finally(() => (this.#writing = undefined))
    return this.#writing
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0, batchMax)
      const builds = entries.flatMap(entry => ('build' in entry ? [this.#tryBuild(entry)] : []))
      const ended = entries.flatMap(entry => ('build' in entry ? [] : [entry]))
      try {
        const traces = (await Promise.all(builds)).filter(trace => trace !== undefined)
        await saveCallTraces(this.#postgres.query, traces, ended)
      } catch (error) {
        this.#noteDropped(error)
      }
    }
  }

  #tryBuild({ build }: { build: () => Promise<NewCallTrace> }): Promise<NewCallTrace | undefined> {
    return build().catch((error: unknown) => {
      this.#noteDropped(error)
      return undefined
    })
  }

  #noteDropped(error: unknown): void {
    this.#log.warn({ err: error }, 'call-log.not-kept')
  }
}

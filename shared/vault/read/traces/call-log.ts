import { setTimeout as delay } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  saveCallTraces,
  type EndedCall,
  type NewCallTrace,
} from '#shared/vault/read/traces/call-traces.postgres.ts'

/** From the first entry to the statement that writes it: many calls share one. */
const gatherMs = 20
const batchMax = 100
/** More entries wait only while the database is out of reach; further ones are dropped. */
const waitingMax = 2_000

type Entry = { build: () => Promise<NewCallTrace> } | EndedCall

/** Writes traces that no answer waits for. One that cannot be written is dropped, and the log says so. */
export class CallLog {
  readonly #log: Log
  readonly #save: (entry: Entry) => Promise<unknown>
  readonly #waiting = new Set<Promise<void>>()

  constructor({ query }: Pick<Postgres, 'query'>, log: Log) {
    this.#log = log
    const saveAll = async (entries: Entry[]): Promise<Entry[]> => {
      const builds = entries.flatMap(entry => ('build' in entry ? [this.#tryBuild(entry)] : []))
      const traces = (await Promise.all(builds)).filter(trace => trace !== undefined)
      const ended = entries.flatMap(entry => ('build' in entry ? [] : [entry]))
      await saveCallTraces(query, traces, ended)
      return entries
    }
    this.#save = batchLoader(saveAll, { concurrency: 1, batchMax, gather: () => delay(gatherMs) })
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
    await Promise.all(this.#waiting)
  }

  #add(entry: Entry): void {
    if (this.#waiting.size >= waitingMax) return this.#noteDropped(new Error('too many wait'))
    const saved = this.#save(entry)
      .then(() => {})
      .catch((error: unknown) => this.#noteDropped(error))
      .finally(() => this.#waiting.delete(saved))
    this.#waiting.add(saved)
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

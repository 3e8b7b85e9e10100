import type { PgBoss } from 'pg-boss'
import type { Log } from '#shared/core/log.ts'
import { jobOptions, type JobName } from '#shared/domain/jobs.ts'

/** How often a worker asks Postgres about the queues, in milliseconds. */
export type QueuePace = {
  /** Jobs that become due by the clock (tries after a failure, snoozed ones) begin at most so much later. */
  lookEveryMs: number
  /** Dead workers are looked for at most so often; one is noticed 10 s after its last heartbeat. */
  passEveryMs: number
}

export const defaultQueuePace: QueuePace = { lookEveryMs: 1_000, passEveryMs: 2_000 }

/**
 * Wakes the fetchers of queues with due jobs. NOTIFY wakes them for new jobs; one statement a second for all
 * queues finds the others. Each fetcher asking for itself is 29 statements a second of an idle worker.
 *
 * Where fetchers take single jobs one of them is woken, and each that gets a job wakes the next: what is due
 * may all be of a group at its limit, and then one fetcher finds that out instead of twelve.
 *
 * The same statement finds out whether jobs run anywhere: only then dead workers are looked for.
 */
export class DueQueues {
  readonly #boss: PgBoss
  readonly #log: Log
  readonly #schema: string
  readonly #intervalMs: number
  readonly #supervisor: Supervisor
  readonly #names = new Set<JobName>()
  #timer: NodeJS.Timeout | undefined
  #isAsking = false

  constructor(boss: PgBoss, schema: string, log: Log, { lookEveryMs, passEveryMs }: QueuePace) {
    this.#boss = boss
    this.#schema = schema
    this.#log = log
    this.#intervalMs = lookEveryMs
    this.#supervisor = new Supervisor(boss, log, passEveryMs)
  }

  add(name: JobName): void {
    this.#names.add(name)
    this.#timer ??= setInterval(() => void this.#wake(), this.#intervalMs)
  }

  /** For a fetcher of single jobs that has got one: it asks again afterwards, and another asks now. */
  wakeNext(name: JobName): void {
    if (jobOptions[name].batchSize > 1 || !this.#names.has(name)) return
    const fetchers = this.#boss.getWipData().filter(fetcher => fetcher.name === name)
    const idle = fetchers.find(({ count }) => count === 0)
    const busy = fetchers.filter(({ count }) => count > 0)
    for (const { id } of idle ? [...busy, idle] : busy) this.#boss.notifyWorker(id)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#names.clear()
  }

  /** Never rejects. */
  async #wake(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      const isBusy = this.#boss.getWipData().some(({ count }) => count > 0)
      const { due, areJobsActive } = await this.#findDue(isBusy)
      for (const name of due) this.#wakeFetchers(name)
      void this.#supervisor.supervise(isBusy || areJobsActive)
    } catch (error) {
      // The next second asks again.
      this.#log.warn({ err: error }, 'queue.error')
    } finally {
      this.#isAsking = false
    }
  }

  #wakeFetchers(name: JobName): void {
    const fetchers = this.#boss.getWipData().filter(fetcher => fetcher.name === name)
    const isSingle = jobOptions[name].batchSize === 1
    const woken = isSingle ? fetchers.filter(({ count }) => count === 0).slice(0, 1) : fetchers
    for (const { id } of woken) this.#boss.notifyWorker(id)
  }

  /** @param isBusy this process runs jobs, so that the others need not be asked for */
  async #findDue(isBusy: boolean): Promise<{ due: JobName[]; areJobsActive: boolean }> {
    const { rows } = await this.#boss.getDb().executeSql(
      `select name from unnest($1::text[]) as asked(name)
       where exists (select from ${this.#schema}.job j
                     where j.name = asked.name and j.state < 'active' and not j.blocked
                       and j.start_after <= now())
       union all
       select '' where not $2::boolean and exists (
         select from ${this.#schema}.job where state = 'active' and name not like '\\_\\_pgboss%')`,
      [[...this.#names], isBusy],
    )
    const names = (rows as { name: JobName | '' }[]).map(({ name }) => name)
    return { due: names.filter(name => name !== ''), areJobsActive: names.includes('') }
  }
}

/**
 * Has pg-boss look for jobs of dead workers as long as jobs run in any process, and once more after that. It does
 * so by itself only once a minute: a pass is 14 statements, which were two thirds of what an idle worker costs.
 */
export class Supervisor {
  readonly #boss: PgBoss
  readonly #log: Log
  readonly #passEveryMs: number
  #lastAt = Number.NEGATIVE_INFINITY
  #isPassing = false
  #wereJobsActive = false

  constructor(boss: PgBoss, log: Log, passEveryMs: number) {
    this.#boss = boss
    this.#log = log
    this.#passEveryMs = passEveryMs
  }

  /**
   * Runs a pass when one is due. Never rejects.
   *
   * @param areJobsActive some process runs jobs, or died while it did
   */
  async supervise(areJobsActive: boolean): Promise<void> {
    if (!areJobsActive && !this.#wereJobsActive) return
    if (this.#isPassing || performance.now() - this.#lastAt < this.#passEveryMs) return
    this.#isPassing = true
    this.#lastAt = performance.now()
    try {
      await this.#boss.supervise()
      this.#wereJobsActive = areJobsActive
    } catch (error) {
      // The next second tries again.
      this.#log.warn({ err: error }, 'queue.error')
    } finally {
      this.#isPassing = false
    }
  }
}

import type { PgBoss } from 'pg-boss'
import type { Log } from '#shared/core/log.ts'
import { jobOptions, type JobName } from '#shared/domain/jobs.ts'
import { awaitedMark } from '#shared/storage/queue/job-sql.ts'

/** How often a worker asks Postgres about the queues, in milliseconds. */
export type QueuePace = {
  /** Jobs that become due by the clock (tries after a failure, snoozed ones) begin at most so much later. */
  lookEveryMs: number
  /** Dead workers are looked for at most so often; one is noticed 10 s after its last heartbeat. */
  passEveryMs: number
  /** New jobs of a queue that `lingers` are taken at most so often; at once where the last ones were taken before. */
  lingerMs: number
}

export const defaultQueuePace: QueuePace = { lookEveryMs: 1_000, passEveryMs: 2_000, lingerMs: 50 }

/**
 * Wakes the fetchers of queues with due jobs: for new jobs, of which a NOTIFY tells, and for others by one statement a
 * second for all queues. Each fetcher asking for itself is 29 statements a second of an idle worker.
 *
 * A NOTIFY wakes one fetcher, and each that gets a full batch wakes the next: pg-boss would wake all of them, and all
 * but one would find nothing. Where fetchers take single jobs one is woken for due jobs, too: what is due may all be of
 * a group at its limit.
 *
 * The same statement finds out whether jobs run anywhere: only then dead workers are looked for.
 */
export class DueQueues {
  readonly #boss: PgBoss
  readonly #log: Log
  readonly #schema: string
  readonly #intervalMs: number
  readonly #lingerMs: number
  readonly #supervisor: Supervisor
  readonly #names = new Set<JobName>()
  /** When fetchers were woken for new jobs, by their ids: those woken last may not have taken theirs yet. */
  readonly #wokenAt = new Map<string, number>()
  /** When a fetcher was last woken for new jobs of a queue, and the timers of those whose jobs linger. */
  readonly #batchBegun = new Map<string, number>()
  readonly #lingering = new Map<string, NodeJS.Timeout>()
  #timer: NodeJS.Timeout | undefined
  #isAsking = false

  /** @param boss not started */
  constructor(boss: PgBoss, schema: string, log: Log, pace: QueuePace) {
    this.#boss = boss
    this.#schema = schema
    this.#log = log
    this.#intervalMs = pace.lookEveryMs
    this.#lingerMs = pace.lingerMs
    this.#supervisor = new Supervisor(boss, log, pace.passEveryMs)
    const db = boss.getDb()
    const listen = db.listen?.bind(db)
    db.listen = (channel, _, onReconnect) =>
      listen!(channel, payload => this.#onNotify(payload), onReconnect)
  }

  /**
   * For new jobs: wakes a fetcher. It wakes a queue whose jobs linger once in that time, and at once when the last
   * time is over: a batch of 50 costs not much more than one job.
   */
  #onNotify(payload: string): void {
    const isAwaited = payload.endsWith(awaitedMark)
    const name = isAwaited ? payload.slice(0, -awaitedMark.length) : payload
    const lingers = !isAwaited && jobOptions[name as JobName]?.lingers
    const dueAt = lingers ? (this.#batchBegun.get(name) ?? -Infinity) + this.#lingerMs : -Infinity
    const waitMs = dueAt - performance.now()
    if (waitMs <= 0) this.#begin(name)
    else if (!this.#lingering.has(name))
      this.#lingering.set(
        name,
        setTimeout(() => this.#begin(name), waitMs),
      )
  }

  #begin(name: string): void {
    clearTimeout(this.#lingering.get(name))
    this.#lingering.delete(name)
    this.#batchBegun.set(name, performance.now())
    this.#wakeOne(name)
  }

  add(name: JobName): void {
    this.#names.add(name)
    this.#timer ??= setInterval(() => void this.#wake(), this.#intervalMs)
  }

  /** For a fetcher that has got as many jobs as it takes at once: it asks again afterwards, and another asks now. */
  wakeNext(name: JobName): void {
    if (!this.#names.has(name)) return
    for (const { id, count } of this.#fetchersOf(name)) if (count > 0) this.#boss.notifyWorker(id)
    this.#wakeOne(name)
  }

  /** For new jobs: wakes an idle fetcher; without one, all ask again when they are done. */
  #wakeOne(name: string): void {
    const fetchers = this.#fetchersOf(name)
    const wokenAt = ({ id }: { id: string }): number => this.#wokenAt.get(id) ?? 0
    const [idle] = fetchers
      .filter(({ count }) => count === 0)
      .toSorted((one, other) => wokenAt(one) - wokenAt(other))
    if (idle) this.#wokenAt.set(idle.id, performance.now())
    for (const { id } of idle ? [idle] : fetchers) this.#boss.notifyWorker(id)
  }

  #fetchersOf(name: string) {
    return this.#boss.getWipData().filter(fetcher => fetcher.name === name)
  }

  stop(): void {
    clearInterval(this.#timer)
    for (const timer of this.#lingering.values()) clearTimeout(timer)
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
    const fetchers = this.#fetchersOf(name)
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

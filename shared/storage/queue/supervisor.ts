import type { PgBoss } from 'pg-boss'
import type { Log } from '#shared/core/log.ts'

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

import type { PgBoss } from 'pg-boss'
import type { BreakerState } from '#shared/core/breaker.ts'
import type { Log } from '#shared/core/log.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** So many jobs of a queue become due at once: where what they need goes away again, no more of them were woken in vain. */
const waveMax = 1_000

/** Jobs that become due sooner wait for a time, not for an answer. */
const soonSeconds = 60

/**
 * Makes jobs due that wait for a dependency: as soon as this process finds out that it answers again, and every
 * 30 s where this process does not know that it is away, since the one that held them may be dead. Nothing is
 * asked of a queue that this process does not take.
 */
export class HeldJobs {
  readonly #boss: PgBoss
  readonly #log: Log
  readonly #waveEveryMs: number
  /** Dependencies that this process knows not to answer: jobs that wait for one of them stay so. */
  away: () => readonly string[] = () => []
  readonly #names = new Set<JobName>()
  #timer: NodeJS.Timeout | undefined
  #wave: NodeJS.Timeout | undefined
  #isWaking = false

  /** @param waveEveryMs between two waves */
  constructor(boss: PgBoss, log: Log, waveEveryMs: number) {
    this.#boss = boss
    this.#log = log
    this.#waveEveryMs = waveEveryMs
  }

  /** From now on for this queue too. */
  add(name: JobName): void {
    this.#names.add(name)
    this.#timer ??= setInterval(() => this.wake(), 30 * this.#waveEveryMs)
    this.wake()
  }

  /** Begins a wave soon; others follow as long as they are full. */
  wake(): void {
    if (this.#names.size === 0) return
    this.#wave ??= setTimeout(() => void this.#wakeWave(), this.#waveEveryMs)
  }

  /** Logs that a dependency of jobs went away or came back, and wakes its jobs when it is back. */
  onChange = (dependency: string, state: BreakerState, reason?: string): void => {
    this.#log.warn({ dependency, state, reason }, 'dependency.state')
    this.wake()
  }

  stop(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#wave)
    this.#names.clear()
  }

  /** Never rejects. */
  async #wakeWave(): Promise<void> {
    this.#wave = undefined
    if (this.#isWaking) return
    this.#isWaking = true
    try {
      if ((await this.#makeDue()) === waveMax) this.wake()
    } catch (error) {
      // The next one, within 30 s, does it.
      this.#log.warn({ err: error }, 'queue.error')
    } finally {
      this.#isWaking = false
    }
  }

  /** In the order in which they run. @returns the most jobs of a queue */
  async #makeDue(): Promise<number> {
    const { rows } = await this.#boss.getDb().executeSql(
      `with held as (
         select asked.name, found.id
         from unnest($1::text[]) as asked(name) cross join lateral (
           select id from ${pgBossSchema}.job j
           where j.name = asked.name and state = 'created' and not blocked
             and start_after > now() + make_interval(secs => ${soonSeconds})
             -- A job without it waits for a time: all() of no dependency is true of null, too.
             and output->>'waitsFor' is not null and output->>'waitsFor' <> all($2::text[])
           order by priority desc, created_on limit ${waveMax} for update skip locked
         ) found
       ), woken as (
         update ${pgBossSchema}.job j set start_after = now(), output = null
         from held where j.name = held.name and j.id = held.id
         returning j.name
       )
       select count(*)::int as jobs from woken group by name`,
      [[...this.#names], this.away()],
    )
    return Math.max(0, ...(rows as { jobs: number }[]).map(({ jobs }) => jobs))
  }
}

/** Why operations that have not ended wait, by their ids; those that wait for a worker only are left out. */
export async function findOperationCauses(
  query: Query,
  operations: readonly string[],
): Promise<Map<string, string>> {
  if (operations.length === 0) return new Map()
  const { rows } = await query<{ operation: string; cause: string }>(
    `select data->>'operation' as operation, min(output->>'message') as cause
     from ${pgBossSchema}.job
     where state < 'active' and not blocked and output->>'waitsFor' is not null
       and start_after > now()
       and (name = 'ingest' and id = any($1::uuid[])
            or name in ('upload', 'import', 'copy-chunk', 'reembed')
               and data->>'operation' = any($1::uuid[]::text[]))
     group by 1`,
    [operations],
    'held-jobs.causes',
  )
  return new Map(rows.map(({ operation, cause }) => [operation, cause]))
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** Between two looks whether the lane is free: what runs in it takes milliseconds, or one model call. */
const retryMs = 150

/**
 * Lanes that this process is in at once: each holds a connection, of ten, and the work in it needs others.
 */
const lanesMax = 5
let lanes = 0

/**
 * Runs `work` while no other process runs one for this organization, under an advisory lock: the shared
 * memory of a team is changed by one turn at a time. Those that wait hold no connection.
 *
 * @throws as `work` does; the reason of `signal` when it is aborted before the lane is free.
 */
export async function inOrgLane<Result>(
  postgres: Pick<Postgres, 'transaction'>,
  org: string,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    const outcome = lanes < lanesMax && (await tryLane(postgres, org, work))
    if (outcome) return outcome.result
    await delay(retryMs, undefined, { signal })
  }
}

/** @returns undefined when the lane is not free. */
async function tryLane<Result>(
  postgres: Pick<Postgres, 'transaction'>,
  org: string,
  work: () => Promise<Result>,
): Promise<{ result: Result } | undefined> {
  lanes++
  try {
    return await postgres.transaction(async ({ query }) => {
      const { rows } = await query<{ locked: boolean }>(
        'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as locked',
        [`org-lane:${org}`],
        'org-lane.lock',
      )
      return rows[0]!.locked ? { result: await work() } : undefined
    })
  } finally {
    lanes--
  }
}

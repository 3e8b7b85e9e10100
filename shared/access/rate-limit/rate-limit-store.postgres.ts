import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { PointStore, Quota } from '#shared/access/rate-limit/limiter.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * Counts the points of a quota in Postgres for all processes. Rows are deleted an hour after their
 * window.
 *
 * @param name distinguishes quotas of the same length
 * @param table of the counters; `rate_points`, when missing
 * @param onError called with every error of the database
 */
export function createPointStore(
  query: Query,
  {
    name,
    quota,
    table = 'rate_points',
    onError,
  }: { name: string; quota: Quota; table?: string; onError: (error: unknown) => void },
): PointStore {
  const { points, seconds: duration } = quota
  const limiter = new RateLimiterPostgres({
    points,
    duration,
    keyPrefix: `${name}:${duration}`,
    storeType: 'client',
    storeClient: {
      query: (q: { text: string; values: unknown[]; name?: string }) =>
        query(q.text, q.values, q.name),
    },
    tableName: table,
    tableCreated: true,
  })

  return {
    async take(subject, points) {
      const used = await limiter.consume(subject, points).catch((rejection: unknown) => {
        if (rejection instanceof RateLimiterRes) return rejection
        onError(rejection)
        throw rejection
      })
      return { taken: used.consumedPoints, resetInMs: used.msBeforeNext }
    },
  }
}

/** Reads counters by their keys, in this order; undefined for one whose window has not begun or has ended. */
export async function readPoints(
  query: Query,
  table: 'budget_points',
  keys: readonly string[],
): Promise<({ points: number; expire: number } | undefined)[]> {
  const { rows } = await query<{ key: string; points: number; expire: number }>(
    `select key, points, expire from ${table} where key = any($1) and expire > $2`,
    [keys, Date.now()],
    `${table}.read`,
  )
  const byKey = new Map(rows.map(row => [row.key, row]))
  return keys.map(key => byKey.get(key))
}

/** SQL of the keys in `budget_points` of the keys that `whose` selects. */
export const budgetKeysSql = (whose: string): string =>
  `select counted || ':' || translate(encode(hash, 'base64'), '+/=', '-_')
   from memory_keys, unnest(array['requests:86400', 'tokens:86400', 'dollars:2592000']) counted where ${whose}`

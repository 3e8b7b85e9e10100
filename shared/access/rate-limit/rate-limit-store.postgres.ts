import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * The points of a quota, counted in Postgres for all processes. Rows are deleted an hour after their
 * window.
 *
 * @param name tells the quota from others of the same length
 * @param onError hears every count that failed
 */
export function createPointStore(
  query: Query,
  { name, quota, onError }: { name: string; quota: Quota; onError: (error: unknown) => void },
): PointStore {
  const { points, seconds: duration } = quota
  const limiter = new RateLimiterPostgres({
    points,
    duration,
    keyPrefix: `${name}:${duration}`,
    storeType: 'client',
    storeClient: { query: (q: Statement) => query(q.text, q.values, q.name) },
    tableName: 'rate_points',
    tableCreated: true,
  })

  return {
    async take(subject, points) {
      const used = await limiter.consume(subject, points).catch((refused: unknown) => {
        if (refused instanceof RateLimiterRes) return refused
        onError(refused)
        throw refused
      })
      return { taken: used.consumedPoints, resetInMs: used.msBeforeNext }
    },
  }
}

type Statement = { text: string; values: unknown[]; name?: string }

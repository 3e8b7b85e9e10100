import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { PointStore, Quota } from '#shared/access/rate-limit/limiter.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * Counts the points of a quota in Postgres for all processes. Rows are deleted an hour after their
 * window.
 *
 * @param name distinguishes quotas of the same length
 * @param onError called with every error of the database
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
      const used = await limiter.consume(subject, points).catch((rejection: unknown) => {
        if (rejection instanceof RateLimiterRes) return rejection
        onError(rejection)
        throw rejection
      })
      return { taken: used.consumedPoints, resetInMs: used.msBeforeNext }
    },
  }
}

type Statement = { text: string; values: unknown[]; name?: string }

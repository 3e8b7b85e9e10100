import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import {
  createLimiter,
  type Limiter,
  type RateLimitResult,
} from '#shared/access/rate-limit/limiter.ts'
import {
  createPointStore,
  readPoints,
} from '#shared/access/rate-limit/rate-limit-store.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What the owner of an account lets a key use in 24 hours, and in 30 days, which begin with the first use. */
export type Budget = {
  /** Hash of the key, as text; keys that share their limits share the budget. */
  subject: string
  /** Null: no limit. */
  requests: number | null
  /** Input and output tokens of model calls, as their providers count them. */
  tokens: number | null
  /** Millionths of a dollar, for these tokens by list prices, in 30 days. */
  micros: number | null
}

/** The budget of a key that is counted as `subject`; none without a limit. */
export const budgetsOf = (
  {
    dailyRequests: requests,
    dailyTokens: tokens,
    monthlyMicros: micros,
  }: Pick<KeyRow, 'dailyRequests' | 'dailyTokens' | 'monthlyMicros'>,
  subject: Buffer,
): Budget[] =>
  requests === null && tokens === null && micros === null
    ? []
    : [{ subject: toSubject(subject), requests, tokens, micros }]

export const toSubject = (hash: Buffer): string => hash.toString('base64url')

/** What of a budget is used, by all processes. */
export type BudgetUse = Record<'requests' | 'tokens' | 'micros', number> & {
  resetsAt: Date | null
  /** When the 30 days end that dollars are counted in. */
  monthResetsAt: Date | null
}

const table = 'budget_points'
const day = 24 * 3600
const kinds = [
  { name: 'requests', seconds: day },
  { name: 'tokens', seconds: day, postpaid: true },
  { name: 'dollars', seconds: 30 * day, postpaid: true },
] as const

/**
 * Counts requests and tokens against the budgets of keys, with the leases of the rate limits: a request rarely waits for
 * Postgres. Each further process may pass requests of a fiftieth of a budget too many. Tokens are known once a call has
 * ended: calls that run by then pass, and another process learns of them with the next call that it ends.
 */
export class Budgets {
  readonly #query: Query
  readonly #limiter: Limiter

  constructor(query: Query, log: Log) {
    const onError = (error: unknown): void => log.warn({ err: error }, 'budgets.uncounted')
    this.#query = query
    this.#limiter = createLimiter(
      kinds.map(({ name, ...quota }) => {
        const counted = { points: Number.MAX_SAFE_INTEGER, seconds: quota.seconds }
        const store = createPointStore(query, { name, quota: counted, table, onError })
        return { ...quota, points: Infinity, store }
      }),
    )
  }

  /** Counts a request; refuses it when requests, tokens or dollars are used up. */
  consume(budget: Budget, account: string): Promise<RateLimitResult> {
    const limits = [budget.requests, budget.tokens, budget.micros].map(limit => limit ?? Infinity)
    return this.#limiter.consume(budget.subject, account, limits)
  }

  /** Counts the tokens of a call that has ended, and what they cost in dollars. */
  spend(budgets: readonly Budget[], tokens: number, dollars: number): void {
    const micros = Math.ceil(dollars * 1e6)
    for (const { subject, ...limits } of budgets) {
      const used = [limits.tokens === null ? 0 : tokens, limits.micros === null ? 0 : micros]
      this.#limiter.spend(subject, [0, ...used])
    }
  }

  /** What each subject has used, as far as it is reported, and what this process has not reported. */
  async usedBy(subjects: readonly string[]): Promise<Map<string, BudgetUse>> {
    const keys = subjects.flatMap(subject =>
      kinds.map(({ name, seconds }) => `${name}:${seconds}:${subject}`),
    )
    const stored = await readPoints(this.#query, table, keys)
    return new Map(
      subjects.map((subject, n) => {
        const points = kinds.map((_, kind) => stored[n * kinds.length + kind])
        const pending = this.#limiter.pendingPoints(subject)
        const [requests, tokens, micros] = kinds.map((_, kind) =>
          Math.max(0, (points[kind]?.points ?? 0) + (pending[kind] ?? 0)),
        ) as [number, number, number]
        const ends = points.map(one => (one ? one.expire : -Infinity))
        const endOf = (at: number): Date | null => (at > 0 ? new Date(at) : null)
        const [resetsAt, monthResetsAt] = [endOf(Math.max(ends[0]!, ends[1]!)), endOf(ends[2]!)]
        return [subject, { requests, tokens, micros, resetsAt, monthResetsAt }]
      }),
    )
  }
}

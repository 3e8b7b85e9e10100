import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import {
  createLimiter,
  type Limiter,
  type RateLimitResult,
} from '#shared/access/rate-limit/limiter.ts'
import {
  createPointStore,
  readPoints,
  type Points,
} from '#shared/access/rate-limit/rate-limit-store.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What the owner of an account lets a key use in 24 hours, which begin with the first request. */
export type Budget = {
  /** Hash of the key, as text; keys that share their limits share the budget. */
  subject: string
  /** Null: no limit. */
  requests: number | null
  /** Input and output tokens of model calls, as their providers count them. */
  tokens: number | null
}

/** The budget of a key that is counted as `subject`; none without a limit. */
export const budgetsOf = (
  { dailyRequests: requests, dailyTokens: tokens }: Pick<KeyRow, 'dailyRequests' | 'dailyTokens'>,
  subject: Buffer,
): Budget[] =>
  requests === null && tokens === null ? [] : [{ subject: toSubject(subject), requests, tokens }]

export const toSubject = (hash: Buffer): string => hash.toString('base64url')

/** What of a budget is used, by all processes. */
export type BudgetUse = { requests: number; tokens: number; resetsAt: Date | null }

const seconds = 24 * 3600
const table = 'budget_points'
const names = ['requests', 'tokens'] as const

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
    const storeOf = (name: string) => {
      const quota = { points: Number.MAX_SAFE_INTEGER, seconds }
      return createPointStore(query, { name, quota, table, onError })
    }
    this.#query = query
    this.#limiter = createLimiter([
      { points: Infinity, seconds, store: storeOf('requests') },
      { points: Infinity, seconds, store: storeOf('tokens'), postpaid: true },
    ])
  }

  /** Counts a request; refuses it when requests or tokens are used up. */
  consume({ subject, requests, tokens }: Budget, account: string): Promise<RateLimitResult> {
    return this.#limiter.consume(subject, account, [requests ?? Infinity, tokens ?? Infinity])
  }

  /** Counts the tokens of a call that has ended. */
  spend(budgets: readonly Budget[], tokens: number): void {
    for (const { subject, tokens: limit } of budgets)
      if (limit !== null && tokens > 0) this.#limiter.spend(subject, tokens)
  }

  /** What each subject has used, as far as it is reported, and what this process has not reported. */
  async usedBy(subjects: readonly string[]): Promise<Map<string, BudgetUse>> {
    const keys = subjects.flatMap(subject => names.map(name => `${name}:${seconds}:${subject}`))
    const stored = await readPoints(this.#query, table, keys)
    return new Map(
      subjects.map((subject, n) => {
        const [requests, tokens] = names.map((_, kind) => stored[n * names.length + kind])
        const pending = this.#limiter.pendingPoints(subject)
        const ends = [requests, tokens].flatMap(points => (points ? [points.expire] : []))
        const used = (points: Points | undefined, kind: number): number =>
          Math.max(0, (points?.points ?? 0) + (pending[kind] ?? 0))
        const resetsAt = ends.length > 0 ? new Date(Math.max(...ends)) : null
        return [subject, { requests: used(requests, 0), tokens: used(tokens, 1), resetsAt }]
      }),
    )
  }
}

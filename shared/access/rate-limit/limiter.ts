import { LRUCache } from 'lru-cache'
import {
  awaitRefill,
  needsRefill,
  isExhausted,
  rollWindow,
  openLease,
  pointsLeft,
  consumePoint,
  type QuotaLease,
} from '#shared/access/rate-limit/quota-lease.ts'
import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'

/** Whether a request is allowed, and the state of the quota that is nearest its end. */
export type RateLimitResult = {
  allowed: boolean
  quota: Quota
  /** Points left, as far as this process knows. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetInMs: number
  /** Requests that this process refused in this window, with this one. */
  refusedCount: number
  /** Owner of the subject, as given to `consume`. */
  owner: string | undefined
}

/** Counts the requests of subjects against all of its quotas. */
export type Limiter = {
  /** Takes a point of every quota, or none when one is used up. */
  consume(subject: string, owner?: string): Promise<RateLimitResult>
  /**
   * The refusal of a subject that this process knows to have used up a quota; never asks a store.
   */
  knownRefusal(subject: string): RateLimitResult | undefined
}

/**
 * A limiter for all processes that use the same stores. Each process leases points in small numbers
 * and spends them locally, so that a request rarely waits for the store. A subject that has used up
 * a quota is refused without asking until its window ends. While a store is out of reach, each
 * process counts alone.
 *
 * @param subjectsMax subjects in memory; the leases of the least recently used one are lost
 * @param storeTimeoutMs longest wait of a request for a store: a limit must not make requests hang
 */
export function createLimiter(
  quotas: readonly (Quota & { store: PointStore })[],
  { subjectsMax, storeTimeoutMs = 1_000 }: { subjectsMax: number; storeTimeoutMs?: number },
): Limiter {
  const subjects = new LRUCache<string, LimitedSubject>({ max: subjectsMax })

  const subjectOf = (name: string): LimitedSubject => {
    const known = subjects.get(name)
    if (known) return known
    const subject = { leases: quotas.map(quota => openLease(quota.store, quota, name)) }
    subjects.set(name, subject)
    return subject
  }

  return {
    async consume(name, owner) {
      const subject = subjectOf(name)
      const { leases } = subject
      if (owner !== undefined) subject.owner = owner
      for (let isStoreAway = false; ;) {
        leases.forEach(rollWindow)
        if (leases.some(isExhausted)) return recordRefusal(subject)
        // A store that is slow or out of reach stops no request.
        const leasesToRefill: QuotaLease[] = isStoreAway ? [] : leases.filter(needsRefill)
        if (leasesToRefill.length === 0) break
        isStoreAway = (
          await Promise.all(leasesToRefill.map(lease => awaitRefill(lease, storeTimeoutMs)))
        ).includes(false)
      }
      leases.forEach(consumePoint)
      const tightest = leases.toSorted((one, other) => pointsLeft(one) - pointsLeft(other))[0]!
      return toResult(tightest, subject.owner)
    },

    knownRefusal(name) {
      const subject = subjects.peek(name)
      subject?.leases.forEach(rollWindow)
      return subject?.leases.some(isExhausted) ? recordRefusal(subject) : undefined
    },
  }
}

type LimitedSubject = { leases: QuotaLease[]; owner?: string }

function recordRefusal({ leases, owner }: LimitedSubject): RateLimitResult {
  const usedUp = leases.filter(isExhausted)
  for (const lease of usedUp) lease.refused++
  // The one that ends last: until then the subject stays refused.
  const last = usedUp.toSorted((one, other) => other.resetsAt - one.resetsAt)[0]!
  return { ...toResult(last, owner), allowed: false }
}

const toResult = (lease: QuotaLease, owner: string | undefined): RateLimitResult => ({
  allowed: true,
  quota: lease.quota,
  remaining: pointsLeft(lease),
  resetInMs: Math.max(0, lease.resetsAt - Date.now()),
  refusedCount: lease.refused,
  owner,
})

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

/** Whether a request may go on, and what to tell its client about the quota that is nearest its end. */
export type RateLimitResult = {
  allowed: boolean
  quota: Quota
  /** Points left, as far as this process knows. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetInMs: number
  /** How many this process has refused in this window, this one included. */
  refusedCount: number
  /** Who the subject belongs to, as `take` was told. */
  owner: string | undefined
}

/** Counts what subjects do against all of its quotas. */
export type Limiter = {
  /** Takes a point of every quota, or none when one is used up. */
  consume(subject: string, owner?: string): Promise<RateLimitResult>
  /** The refusal of a subject that is known here to have used up a quota; asks nobody. */
  knownRefusal(subject: string): RateLimitResult | undefined
}

/**
 * A limiter for all processes that use the same stores. Each borrows points in small numbers and spends
 * them by itself, so that a request hardly ever waits for the store; a subject that has used up a quota
 * is refused without asking until its window ends. While a store is away each process counts alone.
 *
 * @param subjectsMax how many are remembered; what was lent for the one asked longest ago is lost
 */
export function createLimiter(
  quotas: readonly (Quota & { store: PointStore })[],
  { subjectsMax }: { subjectsMax: number },
): Limiter {
  const subjects = new Map<string, LimitedSubject>()

  const touchSubject = (name: string): LimitedSubject => {
    const subject = subjects.get(name) ?? {
      leases: quotas.map(quota => openLease(quota.store, quota, name)),
    }
    subjects.delete(name)
    subjects.set(name, subject)
    if (subjects.size > subjectsMax) subjects.delete(subjects.keys().next().value!)
    return subject
  }

  return {
    async consume(name, owner) {
      const subject = touchSubject(name)
      const { leases } = subject
      if (owner !== undefined) subject.owner = owner
      for (let isStoreAway = false; ;) {
        leases.forEach(rollWindow)
        if (leases.some(isExhausted)) return recordRefusal(subject)
        // A store that is slow or away stops nobody.
        const leasesToRefill: QuotaLease[] = isStoreAway ? [] : leases.filter(needsRefill)
        if (leasesToRefill.length === 0) break
        isStoreAway = (await Promise.all(leasesToRefill.map(awaitRefill))).includes(false)
      }
      leases.forEach(consumePoint)
      const tightest = leases.toSorted((one, other) => pointsLeft(one) - pointsLeft(other))[0]!
      return toResult(tightest, subject.owner)
    },

    knownRefusal(name) {
      const subject = subjects.get(name)
      subject?.leases.forEach(rollWindow)
      return subject?.leases.some(isExhausted) ? recordRefusal(subject) : undefined
    },
  }
}

type LimitedSubject = { leases: QuotaLease[]; owner?: string }

function recordRefusal({ leases, owner }: LimitedSubject): RateLimitResult {
  const usedUp = leases.filter(isExhausted)
  for (const lease of usedUp) lease.refused++
  // The one that lasts longest: before its end no other matters.
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

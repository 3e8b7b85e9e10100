import {
  awaitPoints,
  isDry,
  isUsedUp,
  keepTime,
  openLease,
  pointsLeft,
  spend,
  type Lease,
} from '#shared/access/rate-limit/lease.ts'
import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'

/** Whether a request may go on, and what to tell its client about the quota that is nearest its end. */
export type Verdict = {
  allowed: boolean
  quota: Quota
  /** Points left, as far as this process knows. */
  left: number
  /** Milliseconds until the window ends. */
  endsInMs: number
  /** How many this process has refused in this window, this one included. */
  refused: number
  /** Who the subject belongs to, as `take` was told. */
  owner: string | undefined
}

/** Counts what subjects do against all of its quotas. */
export type Limiter = {
  /** Takes a point of every quota, or none when one is used up. */
  take(subject: string, owner?: string): Promise<Verdict>
  /** The refusal of a subject that is known here to have used up a quota; asks nobody. */
  refusal(subject: string): Verdict | undefined
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
  const known = new Map<string, Subject>()

  const subjectOf = (name: string): Subject => {
    const subject = known.get(name) ?? {
      leases: quotas.map(quota => openLease(quota.store, quota, name)),
    }
    known.delete(name)
    known.set(name, subject)
    if (known.size > subjectsMax) known.delete(known.keys().next().value!)
    return subject
  }

  return {
    async take(name, owner) {
      const subject = subjectOf(name)
      const { leases } = subject
      if (owner !== undefined) subject.owner = owner
      for (let away = false; ;) {
        leases.forEach(keepTime)
        if (leases.some(isUsedUp)) return refused(subject)
        // A store that is slow or away stops nobody.
        const dry: Lease[] = away ? [] : leases.filter(isDry)
        if (dry.length === 0) break
        away = (await Promise.all(dry.map(awaitPoints))).includes(false)
      }
      leases.forEach(spend)
      const scarce = leases.toSorted((one, other) => pointsLeft(one) - pointsLeft(other))[0]!
      return verdictOf(scarce, subject.owner)
    },

    refusal(name) {
      const subject = known.get(name)
      subject?.leases.forEach(keepTime)
      return subject?.leases.some(isUsedUp) ? refused(subject) : undefined
    },
  }
}

type Subject = { leases: Lease[]; owner?: string }

function refused({ leases, owner }: Subject): Verdict {
  const usedUp = leases.filter(isUsedUp)
  for (const lease of usedUp) lease.refused++
  // The one that lasts longest: before its end no other matters.
  const last = usedUp.toSorted((one, other) => other.endsAt - one.endsAt)[0]!
  return { ...verdictOf(last, owner), allowed: false }
}

const verdictOf = (lease: Lease, owner: string | undefined): Verdict => ({
  allowed: true,
  quota: lease.quota,
  left: pointsLeft(lease),
  endsInMs: Math.max(0, lease.endsAt - Date.now()),
  refused: lease.refused,
  owner,
})

import { createLruCache } from '#shared/core/lru-cache.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/** A number of points within a window of seconds; the window starts with the first point. */
export type Quota = {
  points: number
  seconds: number
  /** Its points are told once they are used: a request takes none, and is refused when none is left. */
  postpaid?: boolean
}

/** Counts the points of one quota for all processes. */
export type PointStore = {
  /**
   * Takes points for a subject, even when fewer are left, and returns the total taken.
   *
   * @throws Error when the store is out of reach.
   */
  take(
    subject: string,
    points: number,
  ): Promise<{
    /**
     * Points used or leased in this window; more than the quota when the last request asked for too
     * many.
     */
    taken: number
    /** Milliseconds until the window ends. */
    resetInMs: number
  }>
}

/** A subject's window as one process knows it, with the points it may spend without asking. */
type QuotaLease = {
  quota: Quota
  readonly store: PointStore
  readonly subject: string
  /** When the window ends, in epoch milliseconds. */
  resetsAt: number
  /** Whether the store has answered in this window. */
  isSynced: boolean
  /** Points used or leased by all processes, as the store last answered. */
  takenPoints: number
  /** Leased to this process and not spent. */
  leasedPoints: number
  /** Spent here and not yet reported. */
  unreportedPoints: number
  spentPoints: number
  refused: number
  /** Requests that wait for points. */
  waitingRequests: number
  pendingRefill: Promise<boolean> | undefined
}

/**
 * The share of a quota that a process spends before it asks the store: most keys never use more,
 * and so never cost a statement. Each further process may exceed the quota by this share.
 */
const localShare = 0.02
/** The share of the rest that is leased at once: small, since other processes cannot use it. */
const leaseShare = 0.05

const freshWindow = ({ seconds }: Quota) => ({
  resetsAt: Date.now() + seconds * 1000,
  isSynced: false,
  takenPoints: 0,
  leasedPoints: 0,
  unreportedPoints: 0,
  spentPoints: 0,
  refused: 0,
})

const openLease = (store: PointStore, quota: Quota, subject: string): QuotaLease => ({
  ...freshWindow(quota),
  quota,
  store,
  subject,
  waitingRequests: 0,
  pendingRefill: undefined,
})

/** Starts a new window when the last one has ended. */
function rollWindow(lease: QuotaLease): void {
  if (Date.now() >= lease.resetsAt) Object.assign(lease, freshWindow(lease.quota))
}

/** Points left of the quota, as far as this process knows. */
const pointsLeft = ({ quota, takenPoints, leasedPoints, unreportedPoints }: QuotaLease): number =>
  Math.max(0, quota.points - takenPoints + leasedPoints - unreportedPoints)

/** Whether nothing is left in this window, as far as this process knows. */
const isExhausted = (lease: QuotaLease): boolean =>
  lease.leasedPoints === 0 && pointsLeft(lease) === 0

/** Whether the next point must be leased from the store. */
const needsRefill = ({ isSynced, leasedPoints, unreportedPoints, quota }: QuotaLease): boolean => {
  if (quota.postpaid) return !isSynced && quota.points !== Infinity
  return (
    leasedPoints === 0 &&
    (isSynced || unreportedPoints >= Math.max(1, Math.floor(quota.points * localShare)))
  )
}

/**
 * Spends a point, unreported when none is leased. A lease that was refilled before is refilled
 * early.
 */
function consumePoint(lease: QuotaLease): void {
  if (lease.quota.postpaid || lease.quota.points === Infinity) return
  lease.spentPoints++
  if (lease.leasedPoints > 0) lease.leasedPoints--
  else lease.unreportedPoints++
  if (lease.isSynced && needsRefill(lease) && !isExhausted(lease)) void refillOnce(lease)
}

/**
 * Waits for the store, so many milliseconds at most.
 *
 * @returns whether it answered: then the lease has to be checked again.
 */
async function awaitRefill(lease: QuotaLease, withinMs: number): Promise<boolean> {
  lease.waitingRequests++
  const answered = await withTimeout(refillOnce(lease), withinMs, () => false)
  lease.waitingRequests--
  return answered
}

/** One refill at a time; concurrent callers share it. */
function refillOnce(lease: QuotaLease): Promise<boolean> {
  lease.pendingRefill ??= refill(lease).finally(() => (lease.pendingRefill = undefined))
  return lease.pendingRefill
}

/** Reports what was spent, also what is spent while an earlier report is under way. */
async function reportAll(lease: QuotaLease): Promise<void> {
  let isReported = true
  while (isReported && lease.unreportedPoints > 0) isReported = await refillOnce(lease)
}

/** Reports the unreported points, and leases as many as were spent so far or are waited for. */
async function refill(lease: QuotaLease): Promise<boolean> {
  const { quota, store, subject, resetsAt, unreportedPoints: reported } = lease
  const share = Math.floor((quota.points - lease.takenPoints) * leaseShare)
  const wanted = quota.postpaid
    ? 0
    : Math.max(1, lease.waitingRequests, Math.min(lease.spentPoints, share))
  try {
    const { taken, resetInMs } = await store.take(subject, reported + wanted)
    // A window that started after the request has its own count.
    if (lease.resetsAt === resetsAt) lease.unreportedPoints -= reported
    lease.isSynced = true
    lease.takenPoints = taken
    lease.leasedPoints += Math.max(0, wanted - Math.max(0, taken - quota.points))
    lease.resetsAt = Date.now() + resetInMs
    return true
  } catch {
    // Without the store this process counts alone, until it has spent the whole quota.
    return false
  }
}

/** Whether a request is allowed, and the state of the quota that is nearest its end. */
export type RateLimitResult = {
  allowed: boolean
  quota: Quota
  /** Points left, as far as this process knows. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetInMs: number
  /** When it ends, in epoch milliseconds. */
  resetsAt: number
  /** Requests that this process refused in this window, with this one. */
  refusedCount: number
  /** Owner of the subject, as given to `consume`. */
  owner: string | undefined
}

/** Counts the requests of subjects against all of its quotas. */
export type Limiter = {
  /**
   * Takes a point of every quota, or none when one is used up.
   *
   * @param points of the subject, in the order of the quotas, where they are not those of all; Infinity: no limit
   */
  consume(subject: string, owner?: string, points?: readonly number[]): Promise<RateLimitResult>
  /** Counts points that the subject has used, in the order of the quotas; nothing waits for the store. */
  spend(subject: string, points: readonly number[]): void
  /** Points that this process has used and not reported, less those that it holds, in the order of the quotas. */
  pendingPoints(subject: string): number[]
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
 * @param subjectsMax subjects in memory, 300 to 500 bytes each; the leases of the least recently used one are lost
 * @param storeTimeoutMs longest wait of a request for a store: a limit must not make requests hang
 */
export function createLimiter(
  quotas: readonly (Quota & { store: PointStore })[],
  { subjectsMax = 10_000, storeTimeoutMs = 1_000 } = {},
): Limiter {
  const subjects = createLruCache<LimitedSubject>(subjectsMax)

  const subjectOf = (name: string): LimitedSubject => {
    const known = subjects.get(name)
    if (known) return known
    const subject = { leases: quotas.map(quota => openLease(quota.store, quota, name)) }
    subjects.set(name, subject)
    return subject
  }

  return {
    async consume(name, owner, points) {
      const subject = subjectOf(name)
      const { leases } = subject
      points?.forEach((limit, n) => (leases[n]!.quota = { ...quotas[n]!, points: limit }))
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

    spend(name, points) {
      const used = points.some(count => count > 0) ? subjectOf(name).leases : []
      used.forEach((lease, n) => {
        if (!lease.quota.postpaid || points[n] === 0) return
        rollWindow(lease)
        lease.unreportedPoints += points[n]!
        void reportAll(lease)
      })
    },

    pendingPoints(name) {
      const { leases } = subjects.peek(name) ?? { leases: [] }
      leases.forEach(rollWindow)
      return leases.map(({ unreportedPoints, leasedPoints }) => unreportedPoints - leasedPoints)
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
  resetsAt: lease.resetsAt,
  refusedCount: lease.refused,
  owner,
})

import { withTimeout } from '#shared/core/with-timeout.ts'
import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'

/** A subject's window as one process knows it, with the points it may spend without asking. */
export type QuotaLease = {
  readonly quota: Quota
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

export const openLease = (store: PointStore, quota: Quota, subject: string): QuotaLease => ({
  ...freshWindow(quota),
  quota,
  store,
  subject,
  waitingRequests: 0,
  pendingRefill: undefined,
})

/** Starts a new window when the last one has ended. */
export function rollWindow(lease: QuotaLease): void {
  if (Date.now() >= lease.resetsAt) Object.assign(lease, freshWindow(lease.quota))
}

/** Points left of the quota, as far as this process knows. */
export const pointsLeft = ({
  quota,
  takenPoints,
  leasedPoints,
  unreportedPoints,
}: QuotaLease): number => Math.max(0, quota.points - takenPoints + leasedPoints - unreportedPoints)

/** Whether nothing is left in this window, as far as this process knows. */
export const isExhausted = (lease: QuotaLease): boolean =>
  lease.leasedPoints === 0 && pointsLeft(lease) === 0

/** Whether the next point must be leased from the store. */
export const needsRefill = ({
  isSynced,
  leasedPoints,
  unreportedPoints,
  quota,
}: QuotaLease): boolean =>
  leasedPoints === 0 &&
  (isSynced || unreportedPoints >= Math.max(1, Math.floor(quota.points * localShare)))

/**
 * Spends a point, unreported when none is leased. A lease that was refilled before is refilled
 * early.
 */
export function consumePoint(lease: QuotaLease): void {
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
export async function awaitRefill(lease: QuotaLease, withinMs: number): Promise<boolean> {
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

/** Reports the unreported points, and leases as many as were spent so far or are waited for. */
async function refill(lease: QuotaLease): Promise<boolean> {
  const { quota, store, subject, resetsAt, unreportedPoints: reported } = lease
  const share = Math.floor((quota.points - lease.takenPoints) * leaseShare)
  const wanted = Math.max(1, lease.waitingRequests, Math.min(lease.spentPoints, share))
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

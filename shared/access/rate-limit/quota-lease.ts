import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'

/** What one process knows of a subject's window, and may spend of it without asking. */
export type QuotaLease = {
  readonly quota: Quota
  readonly store: PointStore
  readonly subject: string
  /** When the window ends, in epoch milliseconds. */
  resetsAt: number
  /** Whether the store has answered in this window. */
  isSynced: boolean
  /** Used by all processes or lent to one, as the store last said. */
  takenPoints: number
  /** Lent to this process and not spent. */
  leasedPoints: number
  /** Spent here and not yet reported. */
  unreportedPoints: number
  spentPoints: number
  refused: number
  /** How many requests wait for points. */
  waitingRequests: number
  pendingRefill: Promise<boolean> | undefined
}

/**
 * The share of a quota that a process spends before it asks at all: most keys never use more, and so
 * never cost a statement. It is also how far each further process may exceed the quota.
 */
const localShare = 0.02
/** The share of what is left that is lent at once: small, for what one process holds no other can use. */
const leaseShare = 0.05
/** A store that takes longer is not waited for: a limit must not make requests hang. */
const storeTimeoutMs = 1_000

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

/** Begins a new window where the last one is over. */
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

/** Whether the next point has to be asked for. */
export const needsRefill = ({
  isSynced,
  leasedPoints,
  unreportedPoints,
  quota,
}: QuotaLease): boolean =>
  leasedPoints === 0 &&
  (isSynced || unreportedPoints >= Math.max(1, Math.floor(quota.points * localShare)))

/** Spends a point, on trust when none is lent. Who has borrowed once gets more before it is needed. */
export function consumePoint(lease: QuotaLease): void {
  lease.spentPoints++
  if (lease.leasedPoints > 0) lease.leasedPoints--
  else lease.unreportedPoints++
  if (lease.isSynced && needsRefill(lease) && !isExhausted(lease)) void refillOnce(lease)
}

/**
 * Waits for the store, a second at most.
 *
 * @returns whether it has answered: then the lease is to be looked at again.
 */
export async function awaitRefill(lease: QuotaLease): Promise<boolean> {
  lease.waitingRequests++
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>(resolve => {
    // In a process that was busy for long, the answer is there and not yet read.
    timer = setTimeout(() => setImmediate(resolve, false), storeTimeoutMs)
  })
  const answered = await Promise.race([refillOnce(lease), timeout])
  clearTimeout(timer)
  lease.waitingRequests--
  return answered
}

/** One question at a time: whoever comes meanwhile waits for the same answer. */
function refillOnce(lease: QuotaLease): Promise<boolean> {
  lease.pendingRefill ??= refill(lease).finally(() => (lease.pendingRefill = undefined))
  return lease.pendingRefill
}

/** Reports what was spent on trust, and borrows as much as was used so far or is waited for. */
async function refill(lease: QuotaLease): Promise<boolean> {
  const { quota, store, subject, resetsAt, unreportedPoints: reported } = lease
  const share = Math.floor((quota.points - lease.takenPoints) * leaseShare)
  const wanted = Math.max(1, lease.waitingRequests, Math.min(lease.spentPoints, share))
  try {
    const { taken, resetInMs } = await store.take(subject, reported + wanted)
    // A window that began meanwhile has its own trust.
    if (lease.resetsAt === resetsAt) lease.unreportedPoints -= reported
    lease.isSynced = true
    lease.takenPoints = taken
    lease.leasedPoints += Math.max(0, wanted - Math.max(0, taken - quota.points))
    lease.resetsAt = Date.now() + resetInMs
    return true
  } catch {
    // Without the store this process counts alone: on trust, until it has spent the whole quota.
    return false
  }
}

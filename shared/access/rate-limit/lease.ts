import type { PointStore, Quota } from '#shared/access/rate-limit/quota.ts'

/** What one process knows of a subject's window, and may spend of it without asking. */
export type Lease = {
  readonly quota: Quota
  readonly store: PointStore
  readonly subject: string
  /** When the window ends, in epoch milliseconds. */
  endsAt: number
  /** Whether the store has answered in this window. */
  asked: boolean
  /** Used by all processes or lent to one, as the store last said. */
  taken: number
  /** Lent to this process and not spent. */
  credit: number
  /** Spent here and not yet reported. */
  onTrust: number
  spent: number
  refused: number
  /** How many requests wait for points. */
  waiting: number
  asking: Promise<boolean> | undefined
}

/**
 * The share of a quota that a process spends before it asks at all: most keys never use more, and so
 * never cost a statement. It is also how far each further process may exceed the quota.
 */
const trusted = 0.02
/** The share of what is left that is lent at once: small, for what one process holds no other can use. */
const lent = 0.05
/** A store that takes longer is not waited for: a limit must not make requests hang. */
const patienceMs = 1_000

const freshWindow = ({ seconds }: Quota) => ({
  endsAt: Date.now() + seconds * 1000,
  asked: false,
  taken: 0,
  credit: 0,
  onTrust: 0,
  spent: 0,
  refused: 0,
})

export const openLease = (store: PointStore, quota: Quota, subject: string): Lease => ({
  ...freshWindow(quota),
  quota,
  store,
  subject,
  waiting: 0,
  asking: undefined,
})

/** Begins a new window where the last one is over. */
export function keepTime(lease: Lease): void {
  if (Date.now() >= lease.endsAt) Object.assign(lease, freshWindow(lease.quota))
}

/** Points left of the quota, as far as this process knows. */
export const pointsLeft = ({ quota, taken, credit, onTrust }: Lease): number =>
  Math.max(0, quota.points - taken + credit - onTrust)

/** Whether nothing is left in this window, as far as this process knows. */
export const isUsedUp = (lease: Lease): boolean => lease.credit === 0 && pointsLeft(lease) === 0

/** Whether the next point has to be asked for. */
export const isDry = ({ asked, credit, onTrust, quota }: Lease): boolean =>
  credit === 0 && (asked || onTrust >= Math.max(1, Math.floor(quota.points * trusted)))

/** Spends a point, on trust when none is lent. Who has borrowed once gets more before it is needed. */
export function spend(lease: Lease): void {
  lease.spent++
  if (lease.credit > 0) lease.credit--
  else lease.onTrust++
  if (lease.asked && isDry(lease) && !isUsedUp(lease)) void ask(lease)
}

/**
 * Waits for the store, a second at most.
 *
 * @returns whether it has answered: then the lease is to be looked at again.
 */
export async function awaitPoints(lease: Lease): Promise<boolean> {
  lease.waiting++
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<boolean>(resolve => {
    // In a process that was busy for long, the answer is there and not yet read.
    timer = setTimeout(() => setImmediate(resolve, false), patienceMs)
  })
  const answered = await Promise.race([ask(lease), patience])
  clearTimeout(timer)
  lease.waiting--
  return answered
}

/** One question at a time: whoever comes meanwhile waits for the same answer. */
function ask(lease: Lease): Promise<boolean> {
  lease.asking ??= borrow(lease).finally(() => (lease.asking = undefined))
  return lease.asking
}

/** Reports what was spent on trust, and borrows as much as was used so far or is waited for. */
async function borrow(lease: Lease): Promise<boolean> {
  const { quota, store, subject, endsAt, onTrust: reported } = lease
  const share = Math.floor((quota.points - lease.taken) * lent)
  const wanted = Math.max(1, lease.waiting, Math.min(lease.spent, share))
  try {
    const { taken, endsInMs } = await store.take(subject, reported + wanted)
    // A window that began meanwhile has its own trust.
    if (lease.endsAt === endsAt) lease.onTrust -= reported
    lease.asked = true
    lease.taken = taken
    lease.credit += Math.max(0, wanted - Math.max(0, taken - quota.points))
    lease.endsAt = Date.now() + endsInMs
    return true
  } catch {
    // Without the store this process counts alone: on trust, until it has spent the whole quota.
    return false
  }
}

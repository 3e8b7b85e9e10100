import { parseStart, type Moment } from '#shared/core/dates.ts'
import { expiryPassed } from '#shared/core/refusals.ts'
import type { Memory } from '#shared/domain/memory.ts'

/** The expiry of a memory, and the requested moment; without either it stays. */
export type Expiry = Pick<Memory, 'expiresAt' | 'expiresAsked'>

export const dayMs = 24 * 3600 * 1000
/** A retention ends at full hours, up to an hour early, so that memories are removed together. */
export const retentionStepMs = 3600 * 1000

/** The earlier one of the requested moment and the end of the account's retention. @param days null: no retention */
export function expiryFor({
  requested,
  days,
  storedAt,
}: {
  requested: number | null | undefined
  days: number | null
  storedAt: number
}): Expiry {
  const retentionEnd = days === null ? Infinity : retentionExpiresAt(storedAt, days)
  const expiresAt = Math.min(requested ?? Infinity, retentionEnd)
  return {
    ...(expiresAt < Infinity && { expiresAt }),
    ...(requested != null && { expiresAsked: requested }),
  }
}

function retentionExpiresAt(storedAt: number, days: number): number {
  const expiresAt = storedAt + days * dayMs
  return expiresAt - (expiresAt % retentionStepMs)
}

export const isExpired = (
  { expiresAt }: { expiresAt?: number | undefined },
  now: number,
): boolean => expiresAt !== undefined && expiresAt <= now

/** The earliest expiry among memories; undefined when none expires. */
export function earliestExpiresAt(memories: readonly Expiry[]): number | undefined {
  const times = memories.flatMap(({ expiresAt }) => expiresAt ?? [])
  return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other))
}

/** Parses a requested expiry into epoch milliseconds. @throws Refusal `invalid` when it has passed. */
export function parseExpiresAt(value: Moment, now: number): number
export function parseExpiresAt(value: Moment | undefined, now: number): number | undefined
export function parseExpiresAt(value: Moment | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const at = parseStart(value)
  if (at > now) return at
  throw expiryPassed('It is the moment from which the memory is gone, such as 2030-01-31T00:00:00Z')
}

import { Refusal } from '#shared/core/errors.ts'
import type { Memory } from '#shared/domain/memory.ts'

/**
 * When a memory expires, and the moment that was requested, in epoch milliseconds; without either
 * it stays.
 */
export type Expiry = Pick<Memory, 'expiresAt' | 'expiresAsked'>

export const dayMs = 24 * 3600 * 1000
/**
 * A retention ends at full hours: memories that were stored one by one are removed together, an
 * hour early at most.
 */
export const retentionStepMs = 3600 * 1000

/**
 * When a memory expires: at the requested moment or at the end of its account's retention,
 * whichever is earlier.
 *
 * @param days the retention; null where there is none.
 */
export function expiryFor({
  asked,
  days,
  storedAt,
}: {
  asked: number | null | undefined
  days: number | null
  storedAt: number
}): Expiry {
  const kept = days === null ? Infinity : retentionExpiresAt(storedAt, days)
  const expiresAt = Math.min(asked ?? Infinity, kept)
  return {
    ...(expiresAt < Infinity && { expiresAt }),
    ...(asked != null && { expiresAsked: asked }),
  }
}

function retentionExpiresAt(storedAt: number, days: number): number {
  const whole = storedAt + days * dayMs
  return whole - (whole % retentionStepMs)
}

export const isExpired = (
  { expiresAt }: { expiresAt?: number | undefined },
  now: number,
): boolean => expiresAt !== undefined && expiresAt <= now

/** The earliest expiry among memories; undefined when none expires. */
export function earliestExpiresAt(memories: readonly Expiry[]): number | undefined {
  const ends = memories.flatMap(({ expiresAt }) => expiresAt ?? [])
  return ends.length === 0 ? undefined : ends.reduce((one, other) => Math.min(one, other))
}

/**
 * Parses the expiry that a client requests, into epoch milliseconds.
 *
 * @throws Refusal `invalid` when it has passed.
 */
export function parseExpiresAt(value: string, now: number): number
export function parseExpiresAt(said: string | undefined, now: number): number | undefined
export function parseExpiresAt(said: string | undefined, now: number): number | undefined {
  if (said === undefined) return undefined
  const at = Date.parse(said)
  if (at > now) return at
  throw new Refusal(
    'invalid',
    'expires_at must lie in the future',
    'It is the moment from which the memory is gone, such as 2030-01-31T00:00:00Z',
  )
}

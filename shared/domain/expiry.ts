import { Refusal } from '#shared/core/errors.ts'
import type { Memory } from '#shared/domain/memory.ts'

/** When a memory is over, and what was asked for, in epoch milliseconds; without either it stays. */
export type Expiry = Pick<Memory, 'expiresAt' | 'expiresAsked'>

export const dayMs = 24 * 3600 * 1000
/**
 * What a retention ends goes by the hour: memories that come one by one are removed together, an hour
 * early at most.
 */
export const retentionStepMs = 3600 * 1000

/**
 * When a memory is over: at the moment asked for, or when the retention of its account is, whichever is
 * earlier.
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

/** Whether a memory is over by now. */
export const isExpired = (
  { expiresAt }: { expiresAt?: number | undefined },
  now: number,
): boolean => expiresAt !== undefined && expiresAt <= now

/** The earliest end among memories; undefined where all of them stay. */
export function earliestExpiresAt(memories: readonly Expiry[]): number | undefined {
  const ends = memories.flatMap(({ expiresAt }) => expiresAt ?? [])
  return ends.length === 0 ? undefined : ends.reduce((one, other) => Math.min(one, other))
}

/**
 * The moment a client has asked for, in epoch milliseconds.
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

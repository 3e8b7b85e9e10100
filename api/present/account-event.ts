import type { AccountEvent as Presented } from '#api/contract/types.ts'
import type { AccountEvent } from '#shared/events/account-events.postgres.ts'

export const presentAccountEvent = (event: AccountEvent): Presented => ({
  position: event.position,
  event_id: event.id,
  action: event.action,
  subject: event.subject,
  actor: event.actor,
  created_at: new Date(microsToMs(event.micros)).toISOString(),
  hash: event.hash.toString('hex'),
})

/** Epoch milliseconds of microseconds, which are more than a number holds. */
export const microsToMs = (micros: string): number => Number(BigInt(micros) / 1_000n)

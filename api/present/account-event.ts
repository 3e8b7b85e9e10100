import type { AccountEvent as Presented } from '#api/contract/generated/types.ts'
import type { AccountEvent, RecordedValue } from '#shared/events/account-events.postgres.ts'

export const presentAccountEvent = (event: AccountEvent): Presented => ({
  position: event.position,
  event_id: event.id,
  action: event.action,
  subject: event.subject,
  actor: event.actor,
  created_at: new Date(microsToMs(event.micros)).toISOString(),
  hash: event.hash.toString('hex'),
  ...(typeof event.externalId === 'string' && { external_id: event.externalId }),
  ...(event.change !== null && presentChange(event.change)),
})

function presentChange(change: string): Pick<Presented, 'before' | 'after' | 'org_id'> {
  const [before, after, organization] = JSON.parse(change) as [
    RecordedValue,
    RecordedValue,
    organization?: string,
  ]
  return { before, after, ...(organization !== undefined && { org_id: organization }) }
}

/** Epoch milliseconds of microseconds, which are more than a number holds. */
export const microsToMs = (micros: string): number => Number(BigInt(micros) / 1_000n)

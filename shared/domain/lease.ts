/** Tiers that can be consolidated, and what they become. */
export type SourceTier = 1 | 2
export type TargetTier = 2 | 3

export const tierAbove = (tier: SourceTier): TargetTier => (tier === 1 ? 2 : 3)

/** What a vault is held for while batches are lent and committed: see `holdVault`. */
export const consolidationLock = 'consolidation'

/** A span of event time, both ends in epoch milliseconds and included. */
export type Span = { from: number; to: number }

export type CreatedReflection = { id: string; importance: number }

/** A batch of memories lent to a client. */
export type Lease = {
  /** UUIDv7; the ticket that commits it. */
  batch: string
  /** Of the memories lent. */
  tier: SourceTier
  /** Embedding model that names the vault space they are from. */
  model: string
  /** Oldest first, at least one. */
  sourceIds: string[]
  covers: Span
  expiresAt: Date
}

/** A lease as it stands now, by the database's clock. */
export type LeaseWithState = Lease & {
  state: 'leased' | 'committing' | 'committed'
  /** Its 15 minutes are over; of no meaning once it is past `leased`. */
  expired: boolean
  /** What its commit made, in the order of the entries; empty while it is leased. */
  created: CreatedReflection[]
  /** How many sources its commit marked; null until it is committed. */
  consolidated: number | null
}

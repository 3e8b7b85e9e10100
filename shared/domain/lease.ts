/** Tiers that can be consolidated, and the tiers they are consolidated into. */
export type SourceTier = 1 | 2
export type TargetTier = 2 | 3

export const tierAbove = (tier: SourceTier): TargetTier => (tier === 1 ? 2 : 3)

/** Name of the vault lock that checkout and commit take: see `takeVaultAdvisoryLock`. */
export const consolidationLock = 'consolidation'

/** A span of event time; both ends are epoch milliseconds and inclusive. */
export type Span = { from: number; to: number }

export type CreatedReflection = { id: string; importance: number }

/** A batch of memories leased to a client. */
export type Lease = {
  /** UUIDv7; the ticket that commits it. */
  batch: string
  tier: SourceTier
  /** Embedding model of the vault space. */
  model: string
  /** Oldest first, at least one. */
  sourceIds: string[]
  covers: Span
  expiresAt: Date
}

export type LeaseWithState = Lease & {
  state: 'leased' | 'committing' | 'committed'
  /** For a `leased` one: its 15 minutes have passed. */
  expired: boolean
  /** The reflections its commit created, in the order of the entries; empty before. */
  created: CreatedReflection[]
  /** How many sources its commit marked; null until it is committed. */
  consolidated: number | null
}

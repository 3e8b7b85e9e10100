/** What one write changed in one partition of a vault. */
export type PartitionChange = {
  /** The session vault, or null for the core vault and the reflections. */
  session: string | null
  stored?: readonly string[]
  removed?: readonly string[]
  /** Everything in this partition was removed. */
  cleared?: boolean
  /** The stored texts are unchanged: only their vectors are new. */
  vectorsOnly?: boolean
}

/**
 * Changes of the consolidation debt; numbers may be negative, and so may the debt for a moment: a stored memory can be
 * deleted or consolidated before it is finalized.
 */
export type DebtChange = {
  rawUnits?: number
  rawTokens?: number
  tier2Count?: number
  tier2Importance?: number
  tier2Tokens?: number
}

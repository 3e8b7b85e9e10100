/** What one write changed in one part of a vault. */
export type PartitionChange = {
  /** The session vault, or null for the core vault and the reflections. */
  session: string | null
  stored?: readonly string[]
  removed?: readonly string[]
  /** Everything in this part went. */
  cleared?: boolean
  /** What is stored says the same as before: only its vectors are other ones. */
  vectorsOnly?: boolean
}

/**
 * How the debt moves; every figure may be negative. So may the debt for a moment: what is stored can be
 * deleted or consolidated before it is settled, and the sum is right whichever comes first.
 */
export type DebtChange = {
  rawUnits?: number
  rawTokens?: number
  tier2Count?: number
  tier2Importance?: number
  tier2Tokens?: number
}

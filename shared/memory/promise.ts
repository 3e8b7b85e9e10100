import type { Memory } from '#shared/memory/memory.ts'

/**
 * Memories promised and billed, waiting to be embedded and stored. Ids are fixed and the vault's
 * place is settled, so any number of runs store the same documents once.
 */
export type IngestJob = {
  /** The operation it fulfils; kept in the payload because a redriven job has another id. */
  operation: string
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** Embedding model that names the vault space, as it was when the work was accepted. */
  model: string
  /** The retention of the account when it was accepted, in days; left out where there was none. */
  retentionDays?: number
  memories: Memory[]
}

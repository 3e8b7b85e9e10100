/**
 * What clearings have made invisible: everything of a vault in some of its epochs, or with a session
 * everything of that session in some of its own. Both ends belong to it.
 */
export type Cleared = {
  vault: string
  session: string | null
  from: number
  upTo: number
}

/** Removes from both stores what a clearing has made invisible. */
export type ClearJob = Cleared & {
  operation: string
  /** The key that asked, masked: the answer shows it. */
  key: string
  reset: boolean
}

/** Removes single memories for good. */
export type DeleteIdsJob = {
  operation: string
  vault: string
  /** Of the vault when it was asked: ids of an earlier or later epoch are not found. */
  epoch: number
  /** Different ids, in lower case. */
  ids: string[]
  /** Only those that are over at this moment, in epoch milliseconds; nobody has asked for it. */
  overAt?: number
}

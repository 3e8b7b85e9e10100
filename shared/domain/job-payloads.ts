import type { Memory } from '#shared/domain/memory.ts'
import type { TargetTier, Span } from '#shared/domain/lease.ts'

/**
 * Memories that were accepted and billed, to be embedded and stored. Ids and epochs are fixed, so any
 * number of runs store the same documents once.
 */
export type IngestJob = {
  /** In the payload because a redriven job has another id. */
  operation: string
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** Embedding model of the vault when the work was accepted. */
  model: string
  /** Retention of the account when the work was accepted, in days; left out when there was none. */
  retentionDays?: number
  memories: Memory[]
}

/**
 * What clearings have made invisible: the epochs `from` to `upTo`, both included, of a vault, or with a
 * `session` of that session.
 */
export type ClearedRange = {
  vault: string
  session: string | null
  from: number
  upTo: number
  /**
   * The epoch of the vault when it was cleared. Clearing the vault sets its sessions back to epoch 0, so what
   * has a later one was stored after both.
   */
  vaultEpoch: number
}

/** Erases from both stores what a clearing has made invisible. */
export type ClearJob = ClearedRange & {
  operation: string
  /** The key of the request, masked: the response shows it. */
  key: string
  reset: boolean
  /** Hashes, in hex, of the keys of a vault that is erased: they may be deleted before this runs. */
  keys?: string[]
}

/** Deletes single memories. */
export type DeleteIdsJob = {
  operation: string
  vault: string
  /** Of the vault at the request: ids of other epochs are not found. */
  epoch: number
  /** Different ids, in lower case. */
  ids: string[]
  /** Deletes only those that have expired at this time, in epoch milliseconds; no request then. */
  overAt?: number
}

/** An erasure of an account that is to be finished; `look` counts the checks so far. */
export type AccountEraseJob = { operation: string; look: number }

/** One step of an operation of many steps; the row of the step says what is to be done. */
export type StepJob = {
  operation: string
  /** The vault that is written to. */
  vault: string
  n: number
}

/** An edit that may have been written and not been finalized. */
export type EditJob = {
  operation: string
  vault: string
  epoch: number
  account: string
  /** In hex. */
  keyHash: string
  /** The memory. */
  id: string
}

/** The reflections of an accepted commit, to be stored. */
export type CommitJob = {
  batch: string
  vault: string
  epoch: number
  /** Vault space the vectors belong to. */
  space: string
  /** Of the reflections. */
  tier: TargetTier
  covers: Span
  /** Retention of the account, in days, and when they expire by it; left out when there is none. */
  retentionDays?: number
  expiresAt?: number
  /** Ids are fixed. Vectors are float32 in base64, so that storing needs no provider. */
  reflections: {
    id: string
    text: string
    tokens: number
    importance: number
    vector: string
  }[]
}

export type TurnMessage = { role: 'user' | 'assistant'; text: string; speaker?: string }

/**
 * A member's turn, to be extracted. Only this payload holds the text: like that of an ingest it is deleted
 * within a minute of its use, and when its vault or session is cleared.
 */
export type OrgExtractJob = {
  turn: string
  /** The exchange, when the turn is not its first. */
  operation?: string
  org: string
  /** The member's private vault, at these epochs. */
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** Of the last message, epoch milliseconds. */
  saidAt: number
  messages: TurnMessage[]
}

/** The text is deleted by now: the turn's row has the facts found in it. */
export type OrgTurnJob = Pick<OrgExtractJob, 'turn' | 'operation' | 'org'>

/** The shared memory of an organization, at one epoch of its vault. */
export type OrgVault = { org: string; vault: string; epoch: number }

/** A tag to be asked of what an organization shares already. */
export type TagRunJob = { org: string; run: string }

/** Gives the memories with a tag its new label. */
export type RelabelJob = OrgVault & {
  /** The renaming. */
  operation: string
  /** The admin who renamed it. */
  actor: string
  tag: string
  /** The label it had. */
  from: string
  /** The last run: from then on the label opens nothing. */
  last?: true
}

/** Sends a message to a webhook. */
export type WebhookJob = { delivery: string }

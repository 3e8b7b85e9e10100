import type { Memory } from '#shared/domain/memory.ts'
import type { TargetTier, Span } from '#shared/domain/lease.ts'

/* Payloads outlive deployments: `JobPayloads` in jobs.ts says what may change. */

/** Embeds and stores accepted memories. Ids and epochs are fixed, so that any number of runs store them once. */
export type IngestJob = {
  /** In the payload because a redriven job has another id. */
  operation: string
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** The vault's embedding model, and the account's retention in days, if any, at acceptance. */
  model: string
  retentionDays?: number
  memories: Memory[]
}

/** The epochs `from` to `upTo`, both included, of a vault or of a session, which clearings have made invisible. */
export type ClearedRange = {
  vault: string
  session: string | null
  from: number
  upTo: number
  /** The vault's epoch at the clearing, which sets its sessions back to epoch 0. */
  vaultEpoch: number
}

export type ClearJob = ClearedRange & {
  operation: string
  /** The masked key of the request, for the response. */
  key: string
  reset: boolean
  /** Hashes, in hex, of the keys of an erased vault, which may be deleted before this runs. */
  keys?: string[]
}

export type DeleteIdsJob = {
  operation: string
  vault: string
  /** The vault's at the request: ids of other epochs are not found. */
  epoch: number
  /** Different ids, in lower case. */
  ids: string[]
  /** Deletes only memories that have expired at this time; epoch milliseconds. */
  overAt?: number
}

/** `look` counts the checks so far. */
export type AccountEraseJob = { operation: string; look: number }

/** One step of an operation, described by the row of the step. */
export type StepJob = {
  operation: string
  /** The vault that is written to. */
  vault: string
  n: number
}

/** Finalizes an edit that may have been written. */
export type EditJob = {
  operation: string
  vault: string
  epoch: number
  account: string
  /** In hex. */
  keyHash: string
  id: string
}

/** Stores the reflections of an accepted commit. */
export type CommitJob = {
  batch: string
  vault: string
  epoch: number
  /** Vault space the vectors belong to. */
  space: string
  /** The tier of the reflections. */
  tier: TargetTier
  covers: Span
  /** The account's retention in days, if any, and the expiry that follows. */
  retentionDays?: number
  expiresAt?: number
  /** Ids are fixed. Vectors are float32 in base64, so that storing needs no provider. */
  reflections: { id: string; text: string; tokens: number; importance: number; vector: string }[]
}

export type TurnMessage = { role: 'user' | 'assistant'; text: string; speaker?: string }

/**
 * Extracts facts from a member's turn. Only this payload holds the text, which is deleted within a minute of its use and
 * when its vault or session is cleared.
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
  /** The time of the last message, epoch milliseconds. */
  saidAt: number
  messages: TurnMessage[]
}

/** The turn's row holds the facts. */
export type OrgTurnJob = Pick<OrgExtractJob, 'turn' | 'operation' | 'org'>

/** The shared memory of an organization, at one epoch of its vault. */
export type OrgVault = { org: string; vault: string; epoch: number }

/** Asks a model of each memory that an organization shares whether a tag applies to it; `run` is the row of the run. */
export type TagRunJob = { org: string; run: string }

/** Gives the memories with a tag its new label. */
export type RelabelJob = OrgVault & {
  operation: string
  /** The admin who renamed it. */
  actor: string
  tag: string
  /** The former label. */
  from: string
  /** The last run: from then on the label opens nothing. */
  last?: true
}

export type WebhookJob = { delivery: string }

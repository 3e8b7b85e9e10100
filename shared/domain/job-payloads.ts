import type { Memory } from '#shared/domain/memory.ts'
import type { TargetTier, Span } from '#shared/domain/lease.ts'

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

/**
 * What clearings have made invisible: everything of a vault in some of its epochs, or with a session
 * everything of that session in some of its own. Both ends belong to it.
 */
export type ClearedRange = {
  vault: string
  session: string | null
  from: number
  upTo: number
}

/** Removes from both stores what a clearing has made invisible. */
export type ClearJob = ClearedRange & {
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

/** An erasure that is to be finished; `look` counts how often somebody has looked whether it can be. */
export type AccountEraseJob = { operation: string; look: number }

/** What a job of a file carries; everything else stands with the file. */
export type FileChunkJob = {
  operation: string
  vault: string
  file: string
  /** Which chunk. */
  n: number
}

/** An edit that may have been written and not been settled: all that is needed to settle it. */
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

/** A job of a copy: one chunk of it. */
export type CopyJob = { operation: string; n: number }

/** One page of memories brought in line; the page that ends sends the next. */
export type RetentionJob = { operation: string; step: number }

/** One step of a re-embedding; the step that ends sends the next. */
export type ReembedJob = { operation: string; step: number }

/** Reflections that a commit has promised: all that is needed to store them, whoever does it. */
export type CommitJob = {
  batch: string
  vault: string
  epoch: number
  /** Vault space the vectors belong to. */
  space: string
  /** Of the reflections. */
  tier: TargetTier
  covers: Span
  /** The retention of the account, in days, and when they are over by it; left out where there is none. */
  retentionDays?: number
  expiresAt?: number
  /** Ids are fixed. Vectors are float32 in base64: storing must not depend on the provider again. */
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
 * What a member said, on its way to the extractor. Only this payload holds the words: like those of an
 * ingest they go within a minute of being used, and when their vault or session is cleared.
 */
export type OrgExtractJob = {
  turn: string
  /** The exchange, where the turn is not its first. */
  operation?: string
  org: string
  /** The member's private vault, as of these epochs. */
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  /** When the member said the last of it, epoch milliseconds. */
  saidAt: number
  messages: TurnMessage[]
}

/** The words are gone by now: the turn's row has what was found in them. */
export type OrgTurnJob = Pick<OrgExtractJob, 'turn' | 'operation' | 'org'>

/** The shared memory of an organization, as of one epoch of its vault. */
export type OrgVault = { org: string; vault: string; epoch: number }

/** Gives the memories that bear a tag its new label. */
export type RelabelJob = OrgVault & {
  /** The renaming. */
  operation: string
  /** The admin who renamed it. */
  actor: string
  tag: string
  /** The label it had. */
  from: string
}

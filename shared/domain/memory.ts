import type { Metadata } from '#shared/domain/metadata.ts'

/** 1 raw, verbatim; 2 reflections; 3 high-level reflections. */
export type Tier = 1 | 2 | 3

export const tiers: readonly Tier[] = [1, 2, 3]

export type Role = 'user' | 'assistant' | 'system'

export type Memory = {
  /** UUID, unique over all tiers. */
  id: string
  tier: Tier
  role: Role
  text: string
  /** Event time in epoch milliseconds; the time it was stored is another field. */
  at: number
  /** Length of the text in o200k_base tokens. */
  tokens: number
  /** 1 to 10; only on tiers 2 and 3. */
  importance?: number
  /** The speaker, where the client named one. */
  speaker?: string
  /** When it expires, and the requested moment, if any; epoch milliseconds. */
  expiresAt?: number
  expiresAsked?: number
  /** For a message in several pieces: the id of the first one, and the number of this one, from 0. */
  piece?: { message: string; number: number }
  /** For an answer that broke off: the text is the part that arrived. */
  interrupted?: boolean
  metadata?: Metadata
  /** For a shared memory of an organization: its tags in order, and its author. */
  tags?: readonly string[]
  author?: string
}

/** A vault of a question: that of the key, of the user that it names, the shared one of the member. */
export type VaultKind = 'own' | 'user' | 'team'

export type EmbeddedMemory = Memory & {
  /** Unit length; the vault space sets the dimension. */
  vector: Float32Array
}

/** The vault that a storage function may touch. Only authentication creates a scope. */
export type VaultScope = {
  vault: string
  /** Raised when everything is deleted: rows of earlier epochs are invisible. */
  epoch: number
  /** Raised by every visible write: cached indexes of an older revision are refreshed. */
  revision: number
}

/** A vault at one epoch: what was cleared before does not exist in it. */
export type VaultEpoch = Pick<VaultScope, 'vault' | 'epoch'>

export type RecencyWindow = 'hot' | 'working' | 'longterm'

const hotMs = 4 * 3600 * 1000
const workingMs = 3 * 24 * 3600 * 1000

/** Under four hours is hot, under three days working, everything older long-term. */
export function recencyWindow(at: number, now: number): RecencyWindow {
  const age = now - at
  if (age < hotMs) return 'hot'
  return age < workingMs ? 'working' : 'longterm'
}

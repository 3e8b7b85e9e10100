/** 1 raw: every detail verbatim; 2 reflections: what happened; 3 high-level reflections: what it means. */
export type Tier = 1 | 2 | 3

export const tiers: readonly Tier[] = [1, 2, 3]

export type Role = 'user' | 'assistant' | 'system'

/** One remembered text, at any tier. */
export type Memory = {
  /** UUID, unique over all tiers. */
  id: string
  tier: Tier
  role: Role
  text: string
  /** When it happened, epoch milliseconds; kept apart from when it was stored. */
  at: number
  /** Length of the text in o200k_base tokens. */
  tokens: number
  /** 1 to 10; only on tiers 2 and 3. */
  importance?: number
  /** Who said it, where the client named the speaker. */
  speaker?: string
  /** When it is over, epoch milliseconds; and the moment that was asked for, where one was. */
  expiresAt?: number
  expiresAsked?: number
  /** Of an answer that broke off: this is what was heard of it. */
  interrupted?: boolean
  /** Of a shared memory of an organization: its tags in order, and who it comes from. */
  tags?: readonly string[]
  author?: string
}

/** A memory with its vector, as it is held and stored. */
export type EmbeddedMemory = Memory & {
  /** Unit length; its dimension is that of the vault space. */
  vector: Float32Array
}

/**
 * Whose memories a storage function may touch. Only authentication makes one,
 * so no query can be written without saying whose rows it reads.
 */
export type VaultScope = {
  /** The vault's id; a key points to a vault, a rotated key to the same one. */
  vault: string
  /** Raised when everything is deleted: rows of an earlier epoch no longer exist. */
  epoch: number
  /** Raised by every write that is visible: images held at an older revision refresh. */
  revision: number
}

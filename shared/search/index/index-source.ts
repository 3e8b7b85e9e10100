import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import type { Visibility } from '#shared/domain/visibility.ts'

/** One vector space of a vault, or of a session of it (`null`: the core vault). */
export type IndexRef = {
  scope: VaultScope
  session: string | null
  space: string
  dimension: number
  /**
   * Of a shared vault: what the caller may see. Callers of equal visibility share an index, which
   * contains only what they may see, so hidden memories affect neither results nor cost.
   */
  audience?: Visibility
}

/** Reads the content of indexes from the stores. */
export type IndexSource = {
  /**
   * Passes all memories of the space in batches, fastest in order of time, and waits for each. They are
   * at least as new as the revision of the scope.
   */
  load(ref: IndexRef, onBatch: (rows: EmbeddedMemory[]) => Promise<void>): Promise<void>
  /**
   * What changed after revision `since`: rows to put, and the ids of others to remove. Null when the
   * changes are unknown and everything has to be loaded.
   */
  changes(ref: IndexRef, since: number): Promise<{ put: EmbeddedMemory[]; remove: string[] } | null>
  /** Number of rows and estimated size of the index in bytes, before anything is read. */
  estimate(ref: IndexRef): Promise<{ rows: number; bytes: number }>
}

import type { ListedRow } from '#shared/vault/read/listing.mongo.ts'
import type { Position } from '#shared/vault/read/time-window.ts'
import type { Strand } from '#shared/vault/read/timeline.mongo.ts'
import type { Audience } from '#shared/domain/visibility.ts'

/** A row of a window, whose it is, where it stands in it, and how near it is to the query. */
export type DatedRow = ListedRow & {
  source: 'core' | 'session' | 'org'
  position: Position
  score?: number
}

/** A vault that is looked through; of a shared one, for whom. */
export type DatedStrand = Strand & { source: DatedRow['source']; audience?: Audience }

import type { ListedRow } from '#shared/vault/read/listing.mongo.ts'
import type { TimelinePosition } from '#shared/vault/read/time-window.ts'
import type { TimelineSource } from '#shared/vault/read/timeline.mongo.ts'
import type { Visibility } from '#shared/domain/visibility.ts'

/** A row of a window, whose it is, where it stands in it, and how near it is to the query. */
export type DateSearchRow = ListedRow & {
  source: 'core' | 'session' | 'org'
  position: TimelinePosition
  score?: number
}

/** A vault that is looked through; of a shared one, for whom. */
export type DateSearchSource = TimelineSource & {
  source: DateSearchRow['source']
  audience?: Visibility
}

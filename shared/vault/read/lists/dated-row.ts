import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import type { TimelinePosition } from '#shared/vault/read/lists/time-window.ts'
import type { TimelineSource } from '#shared/vault/read/lists/timeline.mongo.ts'
import type { SearchHit } from '#shared/search/ranking/search-hits.ts'
import type { Visibility } from '#shared/domain/visibility.ts'

/** A row of a window, the part it comes from, its position in time, and how it fits the query. */
export type DateSearchRow = ListedRow & {
  source: 'core' | 'session' | 'org'
  position: TimelinePosition
  hit?: Pick<SearchHit, 'score' | 'similarity' | 'signals'>
}

/** A vault to search; of a shared vault only what `audience` may see. */
export type DateSearchSource = TimelineSource & {
  source: DateSearchRow['source']
  audience?: Visibility
}

import type { Backend } from '#shared/backend.ts'
import type { Embedder } from '#shared/embedding/embedder.ts'
import type { DatedRow } from '#shared/memory/date-search.ts'
import type { Memory, VaultScope } from '#shared/memory/memory.ts'
import { isWithin } from '#shared/memory/time-window.ts'
import type { ListedRow } from '#shared/mongo/listing.ts'
import { embeddedReflections, type TimelineRead } from '#shared/mongo/timeline.ts'
import { createImage, type Image } from '#shared/recall/image/image.ts'
import { rank } from '#shared/recall/ranking/rank.ts'
import { termsOf } from '#shared/recall/words/words.ts'

type Ranking = Pick<Backend, 'mongo' | 'queryVectors' | 'images' | 'nearest' | 'now'>

type Asked = TimelineRead & { query: string; embedder: Embedder }

/** Rows that a window is ranked for; whatever comes behind them has little to do with the query. */
const rankedMax = 500
/** Candidates asked of the database where no image is held. */
const candidatesMax = 2_000

/**
 * The rows of a window that have to do with a query, best first; `more` at the end when there may be
 * others behind them. Raw memories are ranked on the vault's image; reflections are fetched, since the
 * image does not know the periods they are about.
 */
export async function* ranked(
  backend: Ranking,
  scope: VaultScope,
  asked: Asked,
): AsyncGenerator<DatedRow | 'more', void, void> {
  const { query, embedder, window, tiers, importance } = asked
  const vector = await backend.queryVectors.of(embedder, query)
  const [raw, reflections] = await Promise.all([
    rawImage(backend, scope, asked, vector),
    reflectionsOf(backend, scope, asked),
  ])
  const blocks = { ...reflections.image.blocks, 1: raw.blocks[1] }
  const found = rank([{ ...reflections.image, blocks }], {
    text: query,
    vector,
    now: backend.now(),
    limit: rankedMax,
    floor: false,
    calibration: embedder.calibration,
    tiers,
    ...(importance !== undefined && { importance }),
    from: window.from.at,
    to: window.to.at + 1,
  })
  for (const { memory, score } of found) {
    const position = { at: memory.at, id: memory.id }
    if (!isWithin(window, position)) continue
    const row = reflections.rows.get(memory.id) ?? rawRow(memory)
    yield { ...row, position, score }
  }
  if (found.length === rankedMax) yield 'more'
}

/** An image whose raw memories are those of the window at least. */
async function rawImage(
  { images, nearest }: Ranking,
  scope: VaultScope,
  { place, window, tiers, importance, embedder: { space, dimension } }: Asked,
  vector: Float32Array,
): Promise<Image> {
  const nothing = createImage({ dimension, termsOf })
  if (!tiers.includes(1) || importance !== undefined) return nothing
  const image = await images.get({ scope, session: place.session, space, dimension })
  if (image !== 'too-large') return image
  const [from, to] = [window.from.at, window.to.at + 1]
  const question = { place, space, vector, count: candidatesMax, tiers: [1] as const, from, to }
  nothing.put(await nearest.candidates(scope, question))
  return nothing
}

/** The reflections of the window, each as of the time it counts for there. */
async function reflectionsOf(
  { mongo }: Ranking,
  scope: VaultScope,
  { embedder: { space, dimension }, ...read }: Asked,
): Promise<{ image: Image; rows: Map<string, ListedRow> }> {
  const image = createImage({ dimension, termsOf })
  const isRaw = read.place.session !== null || read.tiers.every(tier => tier === 1)
  if (isRaw) return { image, rows: new Map() }
  const found = await embeddedReflections(mongo, scope, { ...read, space })
  const end = read.window.to.at
  image.put(found.map(({ memory }) => ({ ...memory, at: Math.min(memory.at, end) })))
  return { image, rows: new Map(found.map(({ row }) => [row.id, row])) }
}

const rawRow = (memory: Memory): ListedRow => ({ ...memory, consolidated: false, covers: null })

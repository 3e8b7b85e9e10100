import type { Embedder } from '#shared/domain/embedder.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { merged } from '#shared/vault/read/recall.ts'
import { isWithin, type TimeWindow } from '#shared/vault/read/time-window.ts'
import type { ListedRow } from '#shared/vault/read/listing.mongo.ts'
import { embeddedReflections } from '#shared/vault/read/timeline.mongo.ts'
import { orNothing } from '#shared/vault/base/shared-embedders.ts'
import { createImage, type Image } from '#shared/search/index/vault-index.ts'
import { rank, type Found } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/words.ts'
import type { DatedRow, DatedStrand } from '#shared/vault/read/dated-row.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'

type Ranking = {
  mongo: Mongo
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
}

/** What is looked through by one embedder. */
export type RankedStrands = {
  embedder: Embedder
  strands: readonly DatedStrand[]
  /** It is left out when its model does not answer. */
  spare: boolean
}

type Asked = { window: TimeWindow; query: string }

/** Rows that a window is ranked for; whatever comes behind them has little to do with the query. */
const rankedMax = 500
/** Candidates asked of the database where no image is held. */
const candidatesMax = 2_000

/**
 * The rows of a window that have to do with a query, best first; `more` at the end when there may be
 * others behind them. Raw memories are ranked on the vaults' images; reflections are fetched, since the
 * image does not know the periods they are about.
 */
export async function* ranked(
  backend: Ranking,
  parts: readonly RankedStrands[],
  asked: Asked,
): AsyncGenerator<DatedRow | 'more', void, void> {
  const rankings = await Promise.all(
    parts.map(part => {
      const ranking = rankPart(backend, part, asked)
      return part.spare ? orNothing(ranking) : ranking
    }),
  )
  const found = rankings.length === 1 ? rankings[0]! : merged(rankings.flatMap(rows => rows ?? []))
  for (const { row } of found.slice(0, rankedMax)) {
    if (isWithin(asked.window, row.position)) yield row
  }
  if (found.length >= rankedMax) yield 'more'
}

type RankedRow = Found & { row: DatedRow }

async function rankPart(
  backend: Ranking,
  { embedder, strands }: RankedStrands,
  { window, query }: Asked,
): Promise<RankedRow[]> {
  const vector = await backend.queryVectors.of(embedder, query)
  const looked = await Promise.all(
    strands.map(strand => lookedAt(backend, { strand, window, embedder, vector })),
  )
  const { tiers, importance } = strands[0]!.read
  const found = rank(
    looked.map(({ image }) => image),
    {
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
    },
  )
  return found.map(one => {
    const { memory, score, image } = one
    const { source } = strands[image]!
    const listed = looked[image]!.rows.get(memory.id) ?? rawRow(memory)
    return { ...one, row: { ...listed, source, position: { at: memory.at, id: memory.id }, score } }
  })
}

type Looking = {
  strand: DatedStrand
  window: TimeWindow
  embedder: Embedder
  vector: Float32Array
}

type Looked = { image: Image; rows: Map<string, ListedRow> }

async function lookedAt(backend: Ranking, looking: Looking): Promise<Looked> {
  const [raw, reflections] = await Promise.all([
    rawImage(backend, looking),
    reflectionsOf(backend, looking),
  ])
  const blocks = { ...reflections.image.blocks, 1: raw.blocks[1] }
  return { image: { ...reflections.image, blocks }, rows: reflections.rows }
}

/** An image whose raw memories are those of the window at least. */
async function rawImage(
  { images, nearest }: Ranking,
  { strand, window, embedder: { space, dimension }, vector }: Looking,
): Promise<Image> {
  const { scope, audience, read } = strand
  const { place, tiers, importance } = read
  const nothing = createImage({ dimension, termsOf })
  if (!tiers.includes(1) || importance !== undefined) return nothing
  const looked = { scope, session: place.session, ...(audience && { audience }) }
  const image = await images.get({ ...looked, space, dimension })
  if (image !== 'too-large') return image
  const [from, to] = [window.from.at, window.to.at + 1]
  const question = { place, space, vector, count: candidatesMax, tiers: [1] as const, from, to }
  nothing.put(await nearest.candidates(scope, question))
  return nothing
}

/** The reflections of the window, each as of the time it counts for there. */
async function reflectionsOf(
  { mongo }: Ranking,
  { strand: { scope, read }, window, embedder: { space, dimension } }: Looking,
): Promise<Looked> {
  const image = createImage({ dimension, termsOf })
  const isRaw = read.place.session !== null || read.tiers.every(tier => tier === 1)
  if (isRaw) return { image, rows: new Map() }
  const found = await embeddedReflections(mongo, scope, { ...read, window, space })
  const end = window.to.at
  image.put(found.map(({ memory }) => ({ ...memory, at: Math.min(memory.at, end) })))
  return { image, rows: new Map(found.map(({ row }) => [row.id, row])) }
}

const rawRow = (memory: Memory): ListedRow => ({ ...memory, consolidated: false, covers: null })

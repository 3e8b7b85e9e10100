import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Tier } from '#shared/domain/memory.ts'
import type { Repeated } from '#shared/vault/read/already-in-conversation.ts'
import { audienceOf } from '#shared/domain/visibility.ts'
import { sharedVaultOf } from '#shared/domain/member-scope.ts'
import { orNothing, sharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { placeSeen } from '#shared/vault/read/index-source.ts'
import { createImage, type Image } from '#shared/search/index/vault-index.ts'
import type { SpaceRef, Images } from '#shared/search/index/vault-indexes.ts'
import { rank, type Found } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/words.ts'
import { recallSeconds } from '#shared/core/metrics.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

export type RecallQuestion = {
  text: string
  limit: number
  /** The places to look in: the core vault is null. */
  sessions: (string | null)[]
  embeddings: string | undefined
  tiers: readonly Tier[] | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Leave out whatever is not relevant, even if nothing remains. */
  floor: boolean
  /** What need not be found, since whoever asks has it. */
  without?: Repeated | undefined
}

/** What was found, and whose memory it is. */
export type Recalled = Found & { source: 'core' | 'session' | 'org' }

type Recalling = {
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  postgres: Postgres
  now: () => number
}

/** Candidates asked of the database where no image is held: enough to rank anew by words and time. */
const candidatesOf = ({ limit, without }: RecallQuestion): number =>
  Math.min(2_000, Math.max(200, limit * 4) + (without?.size ?? 0))

/**
 * Finds what a vault remembers about a text, best first; for a member of an organization also what they
 * may see of its shared memory, in one ranking. Vaults are ranked on their images, in this process's
 * memory; one too large for that is searched in the database and its candidates are ranked the same way.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` when the memory
 *   store is out of reach.
 */
export async function recall(
  backend: Recalling,
  { scope, member }: Pick<Caller, 'scope' | 'member'>,
  question: RecallQuestion,
): Promise<Recalled[]> {
  const embedder = await backend.embedders.get(question.embeddings)
  const own = question.sessions.map((session): Looked => ({ scope, session }))
  if (!member) return rankIn(backend, embedder, own, question)

  const shared = { scope: sharedVaultOf(member), session: null, audience: audienceOf(member) }
  const [usual, ...former] = await sharedEmbedders(backend, member.orgSpace)
  const isOne = usual.space === embedder.space
  const rankings = await Promise.all([
    rankIn(backend, embedder, isOne ? [...own, shared] : own, question),
    ...(isOne ? [] : [rankIn(backend, usual, [shared], question)]),
    ...former.map(one => orNothing(rankIn(backend, one, [shared], question))),
  ])
  if (rankings.length === 1) return rankings[0]
  return merged(rankings.flatMap(found => found ?? [])).slice(0, question.limit)
}

/** A part of a vault to look in; of a shared one, who looks. */
type Looked = Pick<SpaceRef, 'scope' | 'session' | 'audience'>

async function rankIn(
  backend: Recalling,
  embedder: Embedder,
  places: readonly Looked[],
  question: RecallQuestion,
): Promise<Recalled[]> {
  const vector = await backend.queryVectors.of(embedder, question.text)
  const had = recallSeconds.startTimer({ stage: 'image' })
  const images = await Promise.all(
    places.map(place => imageOf(backend, { ...place, embedder, vector, question })),
  )
  had()
  const ranked = recallSeconds.startTimer({ stage: 'rank' })
  const found = rank(images, {
    text: question.text,
    vector,
    now: backend.now(),
    limit: question.limit,
    floor: question.floor,
    without: question.without,
    calibration: embedder.calibration,
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
  ranked()
  return found.map(row => ({ ...row, source: sourceOf(places[row.image]!) }))
}

function sourceOf({ session, audience }: Looked): Recalled['source'] {
  if (audience) return 'org'
  return session === null ? 'core' : 'session'
}

/** Several rankings as one, best first; of identical texts the newest stands for all. */
export function merged<Row extends Found>(rows: readonly Row[]): Row[] {
  const newest = new Map<string, Row>()
  for (const row of rows) {
    const text = row.memory.text.normalize('NFC').trim()
    const known = newest.get(text)
    if (!known || known.memory.at < row.memory.at) newest.set(text, row)
  }
  return [...newest.values()].sort((a, b) => b.relevance - a.relevance)
}

type Asked = Looked & { embedder: Embedder; vector: Float32Array; question: RecallQuestion }

async function imageOf(
  { images, nearest, postgres }: Recalling,
  { embedder, vector, question, ...place }: Asked,
): Promise<Image> {
  const { space, dimension } = embedder
  const image = await images.get({ ...place, space, dimension })
  if (image !== 'too-large') return image

  const candidates = await nearest.candidates(place.scope, {
    place: await placeSeen(postgres, place),
    space,
    vector,
    count: candidatesOf(question),
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
  const partial = createImage({ dimension, termsOf })
  partial.put(candidates)
  return partial
}

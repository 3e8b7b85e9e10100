import type { Backend } from '#shared/backend.ts'
import type { Embedder } from '#shared/embedding/embedder.ts'
import type { Caller } from '#shared/key/caller.ts'
import type { Tier } from '#shared/memory/memory.ts'
import { sessionEpochOf } from '#shared/postgres/changes.ts'
import { createImage, type Image } from '#shared/recall/image.ts'
import { rank, type Found } from '#shared/recall/rank.ts'
import { termsOf } from '#shared/recall/words.ts'

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
}

type Recalling = Pick<
  Backend,
  'embedders' | 'queryVectors' | 'images' | 'nearest' | 'postgres' | 'now'
>

/** Candidates asked of the database where no image is held: enough to rank anew by words and time. */
const candidatesOf = (limit: number): number => Math.min(2_000, Math.max(200, limit * 4))

/**
 * Finds what a vault remembers about a text, best first. Vaults are ranked on their images, in this
 * process's memory; one too large for that is searched in the database and its candidates are ranked
 * the same way.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` when the memory
 *   store is out of reach.
 */
export async function recall(
  backend: Recalling,
  { scope }: Pick<Caller, 'scope'>,
  question: RecallQuestion,
): Promise<Found[]> {
  const embedder = await backend.embedders.get(question.embeddings)
  const vector = await backend.queryVectors.of(embedder, question.text)
  const images = await Promise.all(
    question.sessions.map(session =>
      imageOf(backend, { scope, session, embedder, vector, question }),
    ),
  )
  return rank(images, {
    text: question.text,
    vector,
    now: backend.now(),
    limit: question.limit,
    floor: question.floor,
    calibration: embedder.calibration,
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
}

type Asked = {
  scope: Caller['scope']
  session: string | null
  embedder: Embedder
  vector: Float32Array
  question: RecallQuestion
}

async function imageOf(
  { images, nearest, postgres }: Recalling,
  { scope, session, embedder, vector, question }: Asked,
): Promise<Image> {
  const { space, dimension } = embedder
  const image = await images.get({ scope, session, space, dimension })
  if (image !== 'too-large') return image

  const sessionEpoch = await sessionEpochOf(postgres.query, scope, session)
  const candidates = await nearest.candidates(scope, {
    place: { session, sessionEpoch },
    space,
    vector,
    count: candidatesOf(question.limit),
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
  const partial = createImage({ dimension, termsOf })
  partial.put(candidates)
  return partial
}

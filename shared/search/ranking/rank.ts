import type { Calibration } from '#shared/domain/embedder.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { blendTiers } from '#shared/search/ranking/blend.ts'
import { conceptsOf } from '#shared/search/query/concepts.ts'
import { measured, type Signals, type Weights } from '#shared/search/ranking/fuse.ts'
import type { Image } from '#shared/search/index/vault-index.ts'
import { judge, type Inquiry, type Judged } from '#shared/search/ranking/score-candidates.ts'
import { favourOrder } from '#shared/search/ranking/order.ts'
import { placesOf, type Place } from '#shared/search/ranking/source-position.ts'
import { readQuestion } from '#shared/search/query/question.ts'
import { scoreOf } from '#shared/search/ranking/score.ts'
import { uniqueTexts } from '#shared/search/ranking/unique.ts'
import { saidBy } from '#shared/search/words/words.ts'

export type Question = {
  text: string
  /** Null when the question could not be embedded: then its words alone are looked for. */
  vector: Float32Array | null
  /** Epoch milliseconds; what "yesterday" is seen from. */
  now: number
  /** 1 to 500. */
  limit: number
  /** All of them, blended, when left out. */
  tiers?: readonly Tier[]
  /** Lowest importance, 1 to 10; rows without one are left out whenever it is set. */
  importance?: number
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
  /** Leave out whatever is not relevant, even if nothing remains. */
  floor: boolean
  /** Leave out rows with these texts, as if they were not there. */
  without?: { has(textHash: number, textOf: () => string): boolean } | undefined
  calibration: Calibration
}

export type Found = {
  memory: Memory
  /** Calibrated similarity, 0 to 1; without a vector the share of the question's words it names. */
  score: number
  /** What it was ranked by: 0 and up, comparable within one answer only. */
  relevance: number
  signals: Signals
  /** Index of the image it comes from. */
  image: number
}

/** Rows looked at closely, by meaning and by words each, beside those that are asked for. */
const reachMin = 48
/** When copies of the same texts fill the reach, it is widened by this factor. */
const widening = 8

/** What its words, its own and lent, must share with the question to be relevant by them alone. */
const wordsFloor = 0.35
/** Beside a relevant row, others need only so much of the floor and of the best row's strength. */
const companionFloor = 0.35
const companionShare = 0.15

/**
 * What the images know about a question, best first, each text once (the newest copy of it).
 * Meaning, words, the turns around, times, names and freshness are fused into one relevance; of
 * near equals the newer wins, so memories never sink with age alone. Rows that have nothing to do
 * with the question are left out even without the floor. Decodes the texts of what it returns and
 * no others.
 */
export function rank(
  images: readonly Image[],
  question: Question,
  weights: Weights = measured,
): Found[] {
  const { text, vector, now, limit, calibration } = question
  const places = placesOf(images, question)
  if (limit < 1 || places.length === 0) return []
  const reading = readQuestion(text, now)
  const indexes = places.map(({ block }) => block.words)
  const concepts = conceptsOf(reading.terms, indexes, weights)
  const inquiry = { text, vector, now, calibration, reading, concepts, weights }

  const all = rankRows(places, inquiry, question)
  const ranked = question.floor ? relevantOf(all, inquiry) : all.filter(isRelated)
  const chosen = question.tiers ? ranked.slice(0, limit) : blendTiers(ranked, limit)
  if (vector) lookAgain(chosen, vector, calibration)
  return chosen.map(({ place, row, relevance, signals }) => ({
    memory: place.block.memory(row),
    score: vector ? signals.similarity : signals.words,
    relevance,
    signals,
    image: place.image,
  }))
}

/** First sight is enough to rank by; the score that clients read and compare is exact. */
function lookAgain(chosen: readonly Judged[], vector: Float32Array, calibration: Calibration) {
  for (const [{ block }, own] of Map.groupBy(chosen, ({ place }) => place)) {
    const cosines = block.cosines(
      vector,
      own.map(({ row }) => row),
    )
    own.forEach(({ signals }, i) => (signals.similarity = scoreOf(cosines[i]!, calibration)))
  }
}

/** All rows worth it in order of relevance, each text once. */
function rankRows(
  places: readonly Place[],
  inquiry: Inquiry,
  { limit, without }: Pick<Question, 'limit' | 'without'>,
): Judged[] {
  const isWanted = ({ place: { block }, row }: Judged): boolean =>
    !without?.has(block.textHash(row), () => block.memory(row).text)
  for (let reach = Math.max(reachMin, limit); ; reach *= widening) {
    const looks = places.map(place => judge(place, inquiry, reach))
    const seen = looks.flatMap(look => look.judged)
    const judged = seen.filter(isWanted)
    favourOrder(judged, inquiry.reading.order)
    judged.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
    const unique = uniqueTexts(judged)
    const crowded = unique.length < limit && unique.length < seen.length
    if (!crowded || looks.every(look => look.complete)) return unique
  }
}

function isRelated({ signals }: Judged): boolean {
  const { similarity, words, neighbours, time } = signals
  return similarity > 0 || words > 0 || neighbours > 0 || time > 0
}

/**
 * Nothing unless some row is surely relevant; then whatever is not much weaker than the best, since
 * a question that is answered once is mostly answered by several turns. What has nothing to do with
 * the question by itself comes along only as the reply to a row that is surely relevant.
 */
function relevantOf(ranked: readonly Judged[], inquiry: Inquiry): Judged[] {
  const strengths = ranked.map(judged => strengthOf(judged, inquiry))
  const best = Math.max(0, ...strengths)
  if (best < 1) return []
  const least = Math.max(companionFloor, best * companionShare)
  const owns = ranked.map(judged => strengthOf(judged, inquiry, { lent: false }))
  const sure = Map.groupBy(
    ranked.filter((_, i) => owns[i]! >= 1),
    ({ place }) => place,
  )
  const isReply = ({ place, row }: Judged) => sure.get(place)?.some(said => said.row === row - 1)
  return ranked.filter((judged, i) => strengths[i]! >= least && (owns[i]! > 0 || isReply(judged)))
}

/** 1 and up is relevant by itself. */
function strengthOf(
  { signals }: Judged,
  { calibration, reading, concepts }: Inquiry,
  { lent }: { lent: boolean } = { lent: true },
): number {
  const { similarity, words, neighbours, time } = signals
  const strength = similarity / calibration.floor + (words + (lent ? neighbours : 0)) / wordsFloor
  const isNothingElseAsked = reading.besideTimes.every(term =>
    concepts.speakers.includes(saidBy + term),
  )
  return isNothingElseAsked ? strength + time : strength
}

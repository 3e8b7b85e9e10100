import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import { defaultWeights, type RankingWeights } from '#shared/search/ranking/signals.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'
import type { EvaluationVault } from '#scripts/lab/bench/recall/evaluation-vault.ts'

/** Ids of memories, best first. */
export type RecallMethod = (
  vault: EvaluationVault,
  question: EvaluationVault['questions'][number],
  calibration: Calibration,
) => string[]

/** Results of a method; recall is measured up to 20. */
const resultLimit = 50

const fusionOnlyWeights: RankingWeights = {
  ...defaultWeights,
  related: 0,
  misspelling: 0,
  contextWords: 0,
  contextSimilarity: 0,
  time: 0,
  speakerMatch: 0,
  answerType: 0,
}

/** Single signals and combinations, to measure what each contributes. */
export const methods: Readonly<Record<string, RecallMethod>> = {
  'BM25 alone': ({ index }, { text }) => {
    const tierIndex = index.byTier[1]
    const { wordIndex, count } = tierIndex
    const terms = [...new Set(termsOf(text))].filter(term => !isMarkerTerm(term))
    const weighted = terms.map(term => {
      const rowsWithTerm = wordIndex.documentFrequency(term)
      return { term, weight: Math.log(1 + (count - rowsWithTerm + 0.5) / (rowsWithTerm + 0.5)) }
    })
    const scores = new Float32Array(count)
    const rows = Array.from(wordIndex.scoreRows(weighted, 0, count, scores))
    rows.sort((a, b) => scores[b]! - scores[a]! || a - b)
    return rows.slice(0, resultLimit).map(row => tierIndex.memory(row).id)
  },
  'vectors alone': ({ index }, { vector }) => {
    const tierIndex = index.byTier[1]
    return Array.from(
      nearestRows(tierIndex, vector, resultLimit).rows,
      row => tierIndex.memory(row).id,
    )
  },
  'both fused': rankWithWeights(fusionOnlyWeights),
  'with related words': rankWithWeights({
    ...fusionOnlyWeights,
    related: defaultWeights.related,
    misspelling: defaultWeights.misspelling,
  }),
  'with everything': rankWithWeights(defaultWeights),
}

function rankWithWeights(weights: RankingWeights): RecallMethod {
  return ({ index, now }, { text, vector }, calibration) => {
    const question = { text, vector, now, limit: resultLimit, floor: false, calibration }
    return rank([index], question, weights).map(({ memory }) => memory.id)
  }
}

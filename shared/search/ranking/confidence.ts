import type { SearchHit } from '#shared/search/ranking/rank.ts'

/**
 * Fitted by logistic regression to the tuned halves of `npm run bench -- harm` and, with a tenth of the
 * weight, of the questions in other words of scripts/lab/bench/recall-quality.ts. Calibration error over five
 * folds 0.018.
 */
const weights = { bias: 0.31, words: 4.34, similarity: 0.89 }

/**
 * How likely the answer to a question is among the hits, 0 to 1: by how well the best of them fits it.
 * 0 without hits.
 */
export function answerConfidence(hits: readonly Pick<SearchHit, 'strength' | 'signals'>[]): number {
  if (hits.length === 0) return 0
  return hitConfidence(hits.reduce((best, hit) => (hit.strength > best.strength ? hit : best)))
}

function hitConfidence({ signals: { words, similarity } }: Pick<SearchHit, 'signals'>): number {
  const sum = weights.bias + weights.words * words + weights.similarity * similarity
  return 1 / (1 + Math.exp(-sum))
}

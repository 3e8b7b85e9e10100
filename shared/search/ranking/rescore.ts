import type { Calibration } from '#shared/domain/embedder.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'

/** Ranking uses approximate cosines; the similarities of what is chosen are exact. @returns the cosines, in order */
export function rescore(
  chosen: readonly (ScoredRow & { vector: Float32Array | null })[],
  calibrationOf: (vector: Float32Array) => Calibration,
): (number | undefined)[] {
  const cosineOf = new Map<ScoredRow, number>()
  for (const [vector, ofQuestion] of Map.groupBy(chosen, row => row.vector)) {
    if (!vector) continue
    const calibration = calibrationOf(vector)
    for (const [{ tierIndex }, rows] of Map.groupBy(ofQuestion, ({ range }) => range)) {
      const cosines = tierIndex.cosines(
        vector,
        rows.map(({ row }) => row),
      )
      for (const [i, row] of rows.entries()) {
        row.signals.similarity = scoreFromCosine(cosines[i]!, calibration)
        cosineOf.set(row, cosines[i]!)
      }
    }
  }
  return chosen.map(row => cosineOf.get(row))
}

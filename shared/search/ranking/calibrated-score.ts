import type { Calibration } from '#shared/domain/embedder.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/**
 * The score of a cosine in responses: 0 for unrelated texts of this embedder, 1 for texts of equal
 * meaning, linear in between. Monotone, so a threshold on scores is one on cosines.
 */
export function scoreFromCosine(cosine: number, { unrelated, same }: Calibration): number {
  const score = (cosine - unrelated) / (same - unrelated)
  return score > 0 ? Math.min(1, score) : 0
}

/** Texts with which a query is compared. */
const sampleMax = 64
/** Fewer texts of a vault may well all be about what is asked. */
const sampleMin = 24
/** A query is hardly nearer than this to all texts: what is left of the scale must tell them apart. */
const shiftMax = 0.95

/**
 * The calibration of each query in a vault: texts of one person, of one subject or in a language that the model
 * does not know are nearer to each other, and to what is asked of them, than the texts that the embedder was
 * measured with. The scale moves towards 1 by as much as the median of the vault's texts does. Bounds and filters
 * of a search do not change it.
 *
 * @returns a function of the vector of a query; it compares each with 64 texts at most, once
 */
export function calibrateForVault(
  ranges: readonly SearchRange[],
  calibration: Calibration,
): (vector: Float32Array | null) => Calibration {
  const { typical } = calibration
  if (typical === undefined || ranges.length === 0) return () => calibration
  const known = new Map<Float32Array, Calibration>()
  let sample: readonly number[] | undefined
  const { tierIndex } = ranges.reduce((one, other) =>
    other.tierIndex.count > one.tierIndex.count ? other : one,
  )
  const calibrate = (vector: Float32Array): Calibration => {
    sample ??= differentTexts(tierIndex)
    if (sample.length < sampleMin) return calibration
    const cosines = tierIndex.approximateCosines(vector, sample).sort()
    const median = cosines[cosines.length >> 1]!
    const shift = Math.min(shiftMax, (median - typical) / (1 - typical))
    if (!(shift > 0)) return calibration
    const move = (cosine: number): number => cosine + shift * (1 - cosine)
    return {
      ...calibration,
      unrelated: move(calibration.unrelated),
      same: move(calibration.same),
      ...(calibration.certain !== undefined && { certain: move(calibration.certain) }),
    }
  }
  return vector => {
    if (!vector) return calibration
    const calibrated = known.get(vector) ?? calibrate(vector)
    known.set(vector, calibrated)
    return calibrated
  }
}

/** Rows from all over an index, each text once. */
function differentTexts(tierIndex: SearchRange['tierIndex']): number[] {
  const rowByText = new Map<number, number>()
  const { count } = tierIndex
  const step = Math.max(1, count / sampleMax)
  for (let i = 0; i < count; i += step) {
    const row = Math.floor(i)
    rowByText.set(tierIndex.textHash(row), row)
  }
  return [...rowByText.values()]
}

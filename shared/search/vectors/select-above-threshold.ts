/** Histogram of 16-bit sums. */
const bins = 4_096
const shift = 4
const histogram = new Uint32Array(bins)

/**
 * A row is selected when its quantized sum is at most this many deviations below the true sum of the
 * last row wanted. Measured with four kinds of vectors (scripts/lab/bench/image.ts): 99 % of the true
 * best ten are selected.
 */
const marginDeviations = 1
/** Comparing selected rows costs about three times as much per row as scanning all. */
const selectedShareMax = 1 / 4

/**
 * The positions whose sums are among the best `k` or may be within the error, each plus `offset`,
 * ascending; null when they are more than a quarter of all.
 *
 * @param deviation By how much sums are off: one standard deviation, above 0.
 */
export function selectAboveThreshold(
  sums: Uint16Array,
  k: number,
  deviation: number,
  offset: number,
): Uint32Array | null {
  const threshold = selectionThreshold(sums, k, deviation)
  let selectedCount = 0
  for (let bin = Math.max(0, Math.floor(threshold) >> shift); bin < bins; bin++)
    selectedCount += histogram[bin]!
  if (selectedCount > sums.length * selectedShareMax) return null

  const rows = new Uint32Array(selectedCount)
  let count = 0
  for (let i = 0; i < sums.length; i++) if (sums[i]! >= threshold) rows[count++] = i + offset
  return rows.subarray(0, count)
}

/**
 * The best of many noisy sums are overestimated (regression to the mean), so the true sum of the last
 * row wanted is estimated nearer to the mean; a row with that true sum may have a lower noisy one.
 */
function selectionThreshold(sums: Uint16Array, k: number, deviation: number): number {
  histogram.fill(0)
  let total = 0
  let squares = 0
  for (let i = 0; i < sums.length; i++) {
    const sum = sums[i]!
    histogram[sum >> shift]!++
    total += sum
    squares += sum * sum
  }
  let bin = bins - 1
  for (let seen = histogram[bin]!; seen < k && bin > 0; seen += histogram[bin]!) bin--

  const mean = total / sums.length
  const variance = Math.max(1, squares / sums.length - mean * mean)
  const shrinkage = Math.sqrt(Math.max(0, 1 - (deviation * deviation) / variance))
  const last = bin << shift
  return Math.min(last, mean + (last - mean) * shrinkage - marginDeviations * deviation)
}

/** Sums of 16 bits, sorted into so many bins. */
const bins = 4_096
const shift = 4
const histogram = new Uint32Array(bins)

/**
 * How many deviations below where its true sum would put it a row may be drawn and still be kept.
 * Measured with four kinds of vectors (scripts/bench/image.ts): of the true best ten, 99 in 100 are.
 */
const marginDeviations = 1
/** Looking at a row by itself costs about three times as much as one after the other. */
const selectedShareMax = 1 / 4

/**
 * The places whose sums are among the best `k` or not surely worse, each plus `offset`, ascending;
 * null when they are more than a quarter of all.
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
 * Errors carry the best of many further up than they belong, so the true sum of the last one wanted
 * is nearer to the mean than it looks; a row with that true sum may be drawn lower still.
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
  const truth = Math.sqrt(Math.max(0, 1 - (deviation * deviation) / variance))
  const last = bin << shift
  return Math.min(last, mean + (last - mean) * truth - marginDeviations * deviation)
}

const bins = 256
const histogram = new Uint32Array(bins)

/**
 * The `wanted` rows with the largest values, best first, and up to half as many more that are nearly
 * as good as the last of them; fewer when there are fewer. All values are above 0.
 */
export function topRows(values: Float32Array, rows: Uint32Array, wanted: number): number[] {
  if (rows.length === 0 || wanted <= 0) return []
  const threshold = rows.length <= wanted ? 0 : topThreshold(values, rows, wanted)
  const top: number[] = []
  for (let i = 0; i < rows.length; i++) if (values[rows[i]!]! >= threshold) top.push(rows[i]!)
  return top.sort((a, b) => values[b]! - values[a]! || b - a).slice(0, Math.ceil(wanted * 1.5))
}

/** A value that at least `wanted` rows reach, by a histogram: sorting would cost ten times as much. */
function topThreshold(values: Float32Array, rows: Uint32Array, wanted: number): number {
  let most = 0
  for (let i = 0; i < rows.length; i++) most = Math.max(most, values[rows[i]!]!)
  histogram.fill(0)
  const scale = (bins - 1) / most
  for (let i = 0; i < rows.length; i++) histogram[(values[rows[i]!]! * scale) | 0]!++
  let bin = bins - 1
  for (let seen = histogram[bin]!; seen < wanted && bin > 0; seen += histogram[bin]!) bin--
  return bin / scale
}

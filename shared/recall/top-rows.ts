const bins = 256
const histogram = new Uint32Array(bins)
let positive = new Uint32Array(0)

/**
 * The rows with the largest positive values, best first: at least `wanted` of them where there are
 * as many. Rows nearly as good as the last one may come along, up to half as many again.
 */
export function topRows(values: Float32Array, wanted: number): number[] {
  if (positive.length < values.length) positive = new Uint32Array(values.length)
  let count = 0
  let most = 0
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value <= 0) continue
    positive[count++] = row
    if (value > most) most = value
  }
  if (count === 0 || wanted <= 0) return []
  const least = count <= wanted ? 0 : leastOfTop(values, count, most, wanted)
  const rows: number[] = []
  for (let i = 0; i < count; i++) {
    const row = positive[i]!
    if (values[row]! >= least) rows.push(row)
  }
  return rows.sort((a, b) => values[b]! - values[a]! || b - a).slice(0, Math.ceil(wanted * 1.5))
}

/** A value that at least `wanted` rows reach: sorting them all would cost ten times as much. */
function leastOfTop(values: Float32Array, count: number, most: number, wanted: number): number {
  histogram.fill(0)
  const scale = (bins - 1) / most
  for (let i = 0; i < count; i++) histogram[(values[positive[i]!]! * scale) | 0]!++
  let bin = bins - 1
  for (let rows = histogram[bin]!; rows < wanted && bin > 0; rows += histogram[bin]!) bin--
  return bin / scale
}

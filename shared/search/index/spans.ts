import type { Span } from '#shared/domain/lease.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** Ranking so many rows takes 7 ms of CPU, ranking 10,000 at once 60 ms. */
const spanRows = 1_000

/** Divides a time [from, to), all times by default, into spans in which the largest index has about 1,000 raw memories. */
export function spansOf(
  indexes: readonly VaultIndex[],
  { from, to }: Span = { from: -Infinity, to: Infinity },
): Span[] {
  const starts = [from]
  const [largest] = indexes
    .map(({ byTier }) => byTier[1])
    .toSorted((one, other) => other.count - one.count)
  if (largest) {
    const { first, end } = largest.range(from, to)
    for (let row = first + spanRows; row < end; row += spanRows) {
      const start = largest.timeAt(row)
      if (start > starts.at(-1)!) starts.push(start)
    }
  }
  return starts.map((start, i) => ({ from: start, to: starts[i + 1] ?? to }))
}

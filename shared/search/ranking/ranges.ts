import type { Steps } from '#shared/core/event-loop.ts'
import type { Condition } from '#shared/domain/condition.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import { tiers as allTiers, type Tier } from '#shared/domain/memory.ts'
import type { ReadonlyTierIndex } from '#shared/search/index/tier-index.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import { tuned } from '#shared/search/tuned.ts'

/** The rows of one tier index within the bounds of a query. */
export type SearchRange = {
  readonly tierIndex: ReadonlyTierIndex
  readonly tier: Tier
  /** Position of its vault index among those searched. */
  readonly indexNumber: number
  readonly first: number
  readonly end: number
  /** Whether every row of [first, end) is allowed; otherwise `allows` decides. */
  readonly allowsAll: boolean
  allows(row: number): boolean
  /** The newest allowed row with the text of a row of the tier; -1 where the range has none. */
  newestOf(row: number): number
}

export type SearchBounds = {
  /** Default: all tiers. */
  tiers?: readonly Tier[]
  /** Lowest importance, 1 to 10; rows without one are left out whenever it is set. */
  importance?: number
  /** Rows that do not meet it are left out. */
  condition?: Condition | undefined
  /** The session of each vault index, null for a core; of the core without it. */
  sessions?: readonly (string | null)[]
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
}

/** Returns the ranges of the indexes within the bounds, without empty ones. */
export function buildSearchRanges(
  vaultIndexes: readonly VaultIndex[],
  bounds: SearchBounds,
): SearchRange[] {
  const { importance, condition, from = -Infinity, to = Infinity } = bounds
  const allowsAll = importance === undefined && condition === undefined
  const ranges: SearchRange[] = []
  for (const [indexNumber, { byTier }] of vaultIndexes.entries()) {
    const session = bounds.sessions?.[indexNumber] ?? null
    for (const tier of bounds.tiers ?? allTiers) {
      const tierIndex = byTier[tier]
      if (importance !== undefined && tier === 1) continue
      const { first, end } = tierIndex.range(from, to)
      if (first >= end) continue
      const meets = condition && tierIndex.matcher(condition, session)
      /** 0 for a row that was not looked at, 1 for no, 2 for yes. */
      const verdicts = new Uint8Array(condition ? tierIndex.count : 0)
      const allows = (row: number): boolean =>
        (importance === undefined || (tierIndex.importance(row) ?? 0) >= importance) &&
        (meets === undefined || (verdicts[row] ||= meets(row) ? 2 : 1) === 2)
      const bounds = { tierIndex, tier, indexNumber, first, end, allowsAll, allows }
      ranges.push({ ...bounds, newestOf: newestRows(bounds) })
    }
  }
  return ranges
}

/** Rows that are looked at between two `yield`s: some 0.3 ms with the longest filter. */
const rowsOfStep = 50

/** Looks at all rows of ranges that do not allow all, in steps. After it `allows` costs next to nothing. */
export function* judgeRows(ranges: readonly SearchRange[]): Steps<void> {
  for (const { first, end, allowsAll, allows } of ranges) {
    if (allowsAll) continue
    for (let row = first; row < end; row++) {
      allows(row)
      if ((row - first) % rowsOfStep === rowsOfStep - 1) yield
    }
  }
}

/** The rows [first, end) of a range. */
export function partOf(range: SearchRange, first: number, end: number): SearchRange {
  const bounds = { ...range, first: Math.max(range.first, first), end: Math.min(range.end, end) }
  return { ...bounds, newestOf: newestRows(bounds) }
}

/** Finds the newest allowed row of a text. Where a text has copies outside of the range all rows are read, once. */
function newestRows(range: Omit<SearchRange, 'newestOf'>): SearchRange['newestOf'] {
  const { tierIndex, first, end, allowsAll, allows } = range
  if (!tierIndex.hasCopies)
    return row => (row >= first && row < end && (allowsAll || allows(row)) ? row : -1)
  if (allowsAll && first === 0 && end === tierIndex.count) return row => tierIndex.newestRow(row)
  /** Row + 1 by the home of its text. */
  let newest: Uint32Array | undefined
  const read = (): Uint32Array => {
    const rows = new Uint32Array(tierIndex.count)
    for (let row = first; row < end; row++)
      if (allowsAll || allows(row)) rows[tierIndex.homeRow(row)] = row + 1
    return rows
  }
  return row => (newest ??= read())[tierIndex.homeRow(row)]! - 1
}

/**
 * Maps a cosine to 0 for unrelated texts of this embedder, 1 for texts of equal meaning, linear in between.
 * Monotone, so a threshold on scores is one on cosines.
 */
export function scoreFromCosine(cosine: number, { unrelated, same }: Calibration): number {
  const score = (cosine - unrelated) / (same - unrelated)
  return score > 0 ? Math.min(1, score) : 0
}

/** Texts with which a query is compared. */
const sampleMax = 64
const { sampleMin, shiftMax } = tuned.calibration

/**
 * Calibrates each query for a vault. Texts of one person, of one subject or in a language that the model does not
 * know are nearer to each other than the texts that the embedder was measured with. The scale moves towards 1 by as
 * much as the median cosine of the query and the vault's texts does. Bounds and filters of a search do not change it.
 *
 * @returns a function of the vector of a query; it compares each vector with 64 texts at most, once
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

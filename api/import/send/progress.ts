/** Counts of the lines so far. */
export type UploadTotals = {
  lines: number
  stored: number
  replaced: number
  skipped: number
  failed: number
  /** The first faulty lines, by their number in the file. */
  errors: { line: number; error: string }[]
}

/** How many faulty lines are recorded. */
export const errorsMax = 20

/** The position of an upload, to resume it after an interruption. */
export type UploadState = {
  version: 1
  /** Id of this run; part of the idempotency key of each part. Another one after a part failed or was cancelled. */
  run: string
  /** Fingerprint of the file and the target; a different one starts a new run. */
  of: string
  /** The next part: its number and its byte offset and line in the file. */
  index: number
  offset: number
  line: number
  totals: UploadTotals
}

/** Names a run. On pages without https browsers have no `randomUUID`. */
export const mintRun = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), part => part.toString(36)).join('-')

export const newState = (fingerprint: string): UploadState => ({
  version: 1,
  run: mintRun(),
  of: fingerprint,
  index: 0,
  offset: 0,
  line: 0,
  totals: { lines: 0, stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] },
})

/** Adds up the totals of several sets of lines. */
export const sumTotals = (all: readonly UploadTotals[]): UploadTotals => ({
  lines: all.reduce((sum, { lines }) => sum + lines, 0),
  stored: all.reduce((sum, { stored }) => sum + stored, 0),
  replaced: all.reduce((sum, { replaced }) => sum + replaced, 0),
  skipped: all.reduce((sum, { skipped }) => sum + skipped, 0),
  failed: all.reduce((sum, { failed }) => sum + failed, 0),
  errors: all.flatMap(({ errors }) => errors).slice(0, errorsMax),
})

/** Where an upload is. */
export type UploadProgress = {
  /** Share of the file that is stored, 0 to 1; null if its length is unknown. */
  share: number | null
  totals: UploadTotals
}

/** Shows how an upload goes. */
export type ProgressDisplay = {
  progress(current: UploadProgress): void
  /** A part is stored. */
  partDone(current: UploadProgress): void
  note(text: string): void
}

/**
 * Estimates the time that is left: as fast as since the first share that was seen, since a run that goes on began
 * elsewhere.
 *
 * @param now in milliseconds
 * @returns a function of the share, 0 to 1: seconds, or null where they are not known yet
 */
export function timeLeft(now = () => performance.now()): (share: number | null) => number | null {
  let first: { share: number; at: number } | undefined
  return share => {
    if (share === null) return null
    first ??= { share, at: now() }
    const done = share - first.share
    return done > 0 ? (((now() - first.at) / done) * Math.max(0, 1 - share)) / 1000 : null
  }
}

/** `3:05 left`, `1:00:00 left`; nothing where it is not known, or less than a second. */
export function formatLeft(seconds: number | null): string {
  if (seconds === null || seconds < 1) return ''
  const rounded = Math.round(seconds)
  const [hours, minutes] = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60]
  const parts = hours > 0 ? [hours, minutes, rounded % 60] : [minutes, rounded % 60]
  const text = parts.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, '0')))
  return `${text.join(':')} left`
}

/** `12,000 lines · 11,990 stored · 8 already there · 2 faulty`. */
export function formatCounts(
  { lines, stored, replaced, skipped, failed }: UploadTotals,
  unit = 'lines',
): string {
  return [
    `${formatNumber(lines)} ${unit}`,
    `${formatNumber(stored)} stored`,
    replaced > 0 && `${formatNumber(replaced)} replaced`,
    skipped > 0 && `${formatNumber(skipped)} already there`,
    failed > 0 && `${formatNumber(failed)} faulty`,
  ]
    .filter(Boolean)
    .join(' · ')
}

const formatNumber = (count: number): string => count.toLocaleString('en')

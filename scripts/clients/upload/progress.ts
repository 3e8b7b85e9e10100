import type { UploadTotals } from '#scripts/clients/upload/state.ts'

/** Displays the progress of an upload: a bar and the time that is left in a terminal, otherwise nothing but the notes. */
export type ProgressDisplay = {
  progress(current: UploadProgress): void
  /** A part is stored. */
  partDone(current: UploadProgress): void
  note(text: string): void
  /** Ends the line of the bar. */
  close(): void
}

type UploadProgress = {
  /** Share of the file that is stored, 0 to 1; null if its length is unknown. */
  share: number | null
  totals: UploadTotals
}

const barWidth = 30

/**
 * @param unit what the lines are called
 * @param now in milliseconds
 */
export function openProgressDisplay(
  stream: NodeJS.WriteStream,
  unit = 'lines',
  now = () => performance.now(),
): ProgressDisplay {
  const replaceLine = (text: string): void => void stream.write(`\r\u001B[2K${text}`)
  if (!stream.isTTY) {
    return {
      progress: () => {},
      partDone: () => {},
      note: text => void stream.write(`${text}\n`),
      close: () => {},
    }
  }
  let first: { share: number; at: number } | undefined
  /** Of the whole, as fast as since the first share that was seen; a run that goes on began elsewhere. */
  const secondsLeft = (share: number | null): number | null => {
    if (share === null) return null
    first ??= { share, at: now() }
    const done = share - first.share
    return done > 0 ? (((now() - first.at) / done) * Math.max(0, 1 - share)) / 1000 : null
  }
  const draw = ({ share, totals }: UploadProgress): void => {
    const left = formatLeft(secondsLeft(share))
    const text = `${formatBar(share)}${formatPercent(share)}${left}${formatCounts(totals, unit)}`
    replaceLine(text.slice(0, Math.max(20, (stream.columns || 80) - 1)))
  }
  return {
    progress: draw,
    partDone: draw,
    note(text) {
      replaceLine('')
      stream.write(`${text}\n`)
    },
    close: () => void stream.write('\n'),
  }
}

function formatBar(share: number | null): string {
  if (share === null) return ''
  const full = Math.round(Math.min(1, share) * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} `
}

const formatPercent = (share: number | null): string =>
  share === null ? '' : `${Math.floor(Math.min(1, share) * 100)}%  `.padStart(6)

/** `3:05 left`, `1:00:00 left`; nothing where it is not known, or less than a second. */
function formatLeft(seconds: number | null): string {
  if (seconds === null || seconds < 1) return ''
  const rounded = Math.round(seconds)
  const [hours, minutes] = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60]
  const parts = hours > 0 ? [hours, minutes, rounded % 60] : [minutes, rounded % 60]
  const text = parts.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, '0')))
  return `${text.join(':')} left  `
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

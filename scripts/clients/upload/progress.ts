import type { UploadTotals } from '#scripts/clients/upload/state.ts'

/** Displays the progress of an upload: a bar in a terminal, otherwise a line per part. */
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

/** @param unit what the lines are called */
export function openProgressDisplay(stream: NodeJS.WriteStream, unit = 'lines'): ProgressDisplay {
  const replaceLine = (text: string): void => void stream.write(`\r\u001B[2K${text}`)
  if (!stream.isTTY) {
    return {
      progress: () => {},
      partDone: ({ share, totals }) =>
        void stream.write(`${formatPercent(share)}${formatCounts(totals, unit)}\n`),
      note: text => void stream.write(`${text}\n`),
      close: () => {},
    }
  }
  const draw = ({ share, totals }: UploadProgress): void => {
    const text = `${formatBar(share)}${formatPercent(share)}${formatCounts(totals, unit)}`
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

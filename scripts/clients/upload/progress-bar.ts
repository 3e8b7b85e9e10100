import {
  formatCounts,
  formatLeft,
  timeLeft,
  type ProgressDisplay,
  type UploadProgress,
} from '#api/import/send/progress.ts'

const barWidth = 30

/**
 * Displays the progress of an upload: a bar and the time that is left in a terminal, otherwise nothing but the notes.
 *
 * @param unit what the lines are called
 * @param now in milliseconds
 */
export function openProgressDisplay(
  stream: NodeJS.WriteStream,
  unit = 'lines',
  now = () => performance.now(),
): ProgressDisplay & { /** Ends the line of the bar. */ close(): void } {
  const replaceLine = (text: string): void => void stream.write(`\r\u001B[2K${text}`)
  if (!stream.isTTY) {
    return {
      progress: () => {},
      partDone: () => {},
      note: text => void stream.write(`${text}\n`),
      close: () => {},
    }
  }
  const secondsLeft = timeLeft(now)
  const draw = ({ share, totals }: UploadProgress): void => {
    const left = formatLeft(secondsLeft(share))
    const text = `${formatBar(share)}${formatPercent(share)}${left && `${left}  `}${formatCounts(totals, unit)}`
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

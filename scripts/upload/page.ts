import type { Totals } from '#scripts/upload/state.ts'

/** Tells how a file goes: a bar in a terminal, a line per part elsewhere. */
export type Page = {
  progress(now: Now): void
  /** A part is through. */
  part(now: Now): void
  note(text: string): void
  /** Leaves the terminal as it was. */
  close(): void
}

type Now = {
  /** How much of the file is through, 0 to 1; null where its length is not known. */
  share: number | null
  totals: Totals
}

const barWidth = 30

export function openPage(stream: NodeJS.WriteStream): Page {
  const redraw = (text: string): void => void stream.write(`\r\u001B[2K${text}`)
  if (!stream.isTTY) {
    return {
      progress: () => {},
      part: ({ share, totals }) => void stream.write(`${percentOf(share)}${countsOf(totals)}\n`),
      note: text => void stream.write(`${text}\n`),
      close: () => {},
    }
  }
  const draw = ({ share, totals }: Now): void => {
    const text = `${barOf(share)}${percentOf(share)}${countsOf(totals)}`
    redraw(text.slice(0, Math.max(20, (stream.columns || 80) - 1)))
  }
  return {
    progress: draw,
    part: draw,
    note(text) {
      redraw('')
      stream.write(`${text}\n`)
    },
    close: () => void stream.write('\n'),
  }
}

function barOf(share: number | null): string {
  if (share === null) return ''
  const full = Math.round(Math.min(1, share) * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} `
}

const percentOf = (share: number | null): string =>
  share === null ? '' : `${Math.floor(Math.min(1, share) * 100)}%  `.padStart(6)

/** `12,000 lines · 11,990 stored · 8 already there · 2 faulty`. */
export function countsOf({ lines, stored, replaced, skipped, failed }: Totals): string {
  return [
    `${number(lines)} lines`,
    `${number(stored)} stored`,
    replaced > 0 && `${number(replaced)} replaced`,
    skipped > 0 && `${number(skipped)} already there`,
    failed > 0 && `${number(failed)} faulty`,
  ]
    .filter(Boolean)
    .join(' · ')
}

const number = (count: number): string => count.toLocaleString('en')

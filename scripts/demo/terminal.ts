import { stripVTControlCharacters, styleText } from 'node:util'

/** How something stands out. On paper, and where NO_COLOR is set, nothing does. */
type TextStyle = 'title' | 'strong' | 'good' | 'bad' | 'faint' | 'accent'

export type Terminal = {
  /** Columns that may be used. */
  readonly width: number
  paint: (look: TextStyle, text: string) => string
  /** Writes a text, broken between words so that no line passes the edge. */
  write: (text: string, layout?: Layout) => void
}

type Layout = {
  /** Spaces that its lines begin with; the margin where none are given. */
  indent?: number
  /** What the first line begins with instead. */
  label?: string
  style?: TextStyle
}

const styles: Record<TextStyle, Parameters<typeof styleText>[0]> = {
  title: ['bold', 'cyan'],
  strong: 'bold',
  good: 'green',
  bad: ['bold', 'red'],
  faint: 'dim',
  accent: 'cyan',
}

/** Columns left free before everything. */
export const margin = 2

const widthMax = 100
const widthMin = 48

/** Writes to a stream, for the width of its terminal; what is not a terminal is given 100 columns and no colour. */
export function openTerminal(stream: NodeJS.WriteStream): Terminal {
  const coloured = stream.isTTY && !process.env.NO_COLOR
  const width = Math.max(widthMin, Math.min(widthMax, stream.columns || widthMax))
  const paint: Terminal['paint'] = (look, text) =>
    coloured ? styleText(styles[look], text, { validateStream: false }) : text
  return {
    width,
    paint,
    write(text, { indent = margin, label = ' '.repeat(indent), style } = {}) {
      wrapText(text, width - indent).forEach((line, index) => {
        const start = index === 0 ? label : ' '.repeat(indent)
        stream.write(`${start}${style ? paint(style, line) : line}`.trimEnd().concat('\n'))
      })
    },
  }
}

/** Breaks a text between its words into lines of at most `width` columns; a longer word stands alone. */
export function wrapText(text: string, width: number): string[] {
  return text.split('\n').flatMap(paragraph => {
    const lines: string[] = []
    let line = ''
    for (const [index, word] of paragraph.split(' ').entries()) {
      const longer = index === 0 ? word : `${line} ${word}`
      if (index > 0 && displayWidth(longer) > width) {
        lines.push(line)
        line = word
      } else line = longer
    }
    return [...lines, line]
  })
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
const wideCharacter =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u

/** Columns a text takes in a terminal, styles aside. */
export function displayWidth(text: string): number {
  let columns = 0
  for (const { segment } of graphemes.segment(stripVTControlCharacters(text))) {
    columns += wideCharacter.test(segment) ? 2 : 1
  }
  return columns
}

/** A text filled up with spaces to so many columns, at its right or at its left. */
export function padText(text: string, columns: number, side: 'right' | 'left' = 'right'): string {
  const fill = ' '.repeat(Math.max(0, columns - displayWidth(text)))
  return side === 'right' ? text + fill : fill + text
}

/** A share between 0 and 1 as a bar of so many cells. */
export function formatBar(share: number, cells: number): string {
  const full = Math.round(Math.max(0, Math.min(1, share)) * cells)
  return '█'.repeat(full) + '░'.repeat(cells - full)
}

/** Milliseconds as a person reads them. */
export function formatDuration(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

import { stripVTControlCharacters, styleText } from 'node:util'

/** Applied on a terminal only, and not if NO_COLOR is set. */
type TextStyle = 'title' | 'strong' | 'good' | 'bad' | 'faint' | 'accent'

export type Terminal = {
  /** Usable columns. */
  readonly width: number
  paint: (style: TextStyle, text: string) => string
  /** Writes a text, wrapped to the width. */
  write: (text: string, layout?: Layout) => void
}

type Layout = {
  /** Leading spaces of each line; default `margin`. */
  indent?: number
  /** Replaces the leading spaces of the first line. */
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

/** Default indent in columns. */
export const margin = 2

const widthMax = 100
const widthMin = 48

/** Writes to a stream with the width of its terminal; other streams get 100 columns and no colour. */
export function openTerminal(stream: NodeJS.WriteStream): Terminal {
  const coloured = stream.isTTY && !process.env.NO_COLOR
  const width = Math.max(widthMin, Math.min(widthMax, stream.columns || widthMax))
  const paint: Terminal['paint'] = (style, text) =>
    coloured ? styleText(styles[style], text, { validateStream: false }) : text
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

/** Wraps a text between words into lines of at most `width` columns; a longer word gets its own line. */
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

/** Columns of a text in a terminal, without its styles. */
export function displayWidth(text: string): number {
  let columns = 0
  for (const { segment } of graphemes.segment(stripVTControlCharacters(text))) {
    columns += wideCharacter.test(segment) ? 2 : 1
  }
  return columns
}

/** Pads a text with spaces to `columns`, on the given side. */
export function padText(text: string, columns: number, side: 'right' | 'left' = 'right'): string {
  const fill = ' '.repeat(Math.max(0, columns - displayWidth(text)))
  return side === 'right' ? text + fill : fill + text
}

/** A share between 0 and 1 as a bar of `cells` characters. */
export function formatBar(share: number, cells: number): string {
  const full = Math.round(Math.max(0, Math.min(1, share)) * cells)
  return '█'.repeat(full) + '░'.repeat(cells - full)
}

/** Milliseconds as text, such as `1.2 s` or `3.4 ms`. */
export function formatDuration(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

import { formatCompact, formatCount, formatUtcDay, pluralize } from '#api/console/app/format.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { table, type Day } from '#api/console/app/parts/chart.ts'

/** Counts of a span of time, in the order of the series; its link leads to what is counted. */
type Bar = { label: string; counts: readonly number[]; href?: string | undefined }

type Props = {
  bars: readonly Bar[]
  /** The names of the counts, with their colours in tokens.css. */
  series: readonly (readonly [name: string, colour: string])[]
  /** What is drawn, in a sentence: screen readers read it, and it stands alone where there is little to draw. */
  summary: string
  /** Beside the names of the series. */
  note?: Children
  /** Writes a count; whole numbers, when missing. */
  format?: (count: number) => string
}

/** The units of the drawing; the page stretches it. */
const height = 100
const slot = 10
const barsMin = 14
/** A picture of fewer spans says nothing. */
const drawnMin = 3

const sumOf = ({ counts }: Bar): number => counts.reduce((sum, count) => sum + count, 0)

/** Stacked bars over time, and the same as a table; of one or two spans the table alone. */
export function stackedBars({ bars, series, summary, note, format }: Props): View {
  const write = format ?? formatCount
  const numbers = table(
    ['When', ...series.map(([name]) => name)],
    bars
      .filter(bar => sumOf(bar) > 0)
      .map(({ label, counts, href }) => [
        href === undefined ? label : html`<a href=${href}>${label}</a>`,
        ...counts.map(write),
      ]),
  )
  if (bars.length < drawnMin) {
    return html`<div class="panel stack-tight">
      <p>${summary}.</p>
      ${numbers}
    </div>`
  }
  const shown = series.filter((_, at) => bars.some(({ counts }) => counts[at]! > 0))
  const highest = Math.max(format ? 1e-6 : 1, ...bars.map(sumOf))
  // A few bars are as narrow as those of a fortnight.
  const width = slot * Math.min(0.8, bars.length / barsMin)
  return html`<figure class="panel stack-tight">
    <div class="history-frame">
      <span class="history-max quiet" aria-hidden="true"
        >${(format ?? formatCompact)(highest)}</span
      >
      <svg
        class="history-bars"
        viewBox=${`0 0 ${bars.length * slot} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label=${summary}
      >
        ${bars.map((bar, index) => barView(bar, index * slot, { highest, width, series, write }))}
      </svg>
    </div>
    <div class="axis quiet" aria-hidden="true">
      ${[0, (bars.length - 1) >> 1, bars.length - 1].map(at => {
        const words = bars[at]!.label.replace('Week of ', '')
        const style = { '--at': (at + 0.5) / bars.length, '--letters': words.length }
        return html`<span key=${at} style=${style}>${words}</span>`
      })}
    </div>
    <figcaption class="chips">${legend(shown)} ${note}</figcaption>
    <details>
      <summary>The same in numbers</summary>
      ${numbers}
    </details>
  </figure>`
}

/** One number of each day. */
export const dayBars = (days: readonly Day[], metric: string, name: string): View => {
  const total = days.reduce((sum, day) => sum + (day[metric] ?? 0), 0)
  const bars = days.map(day => ({ label: formatUtcDay(day.at), counts: [day[metric] ?? 0] }))
  const busiest = bars.reduce((one, other) => (sumOf(other) > sumOf(one) ? other : one))
  const summary = `${name}: ${formatCount(total)} in ${pluralize(days.length, 'day')}, most on ${busiest.label}`
  return stackedBars({ bars, series: [[name, 'data']], summary })
}

/** Names, each beside its colour. */
export const legend = (names: Props['series']): View =>
  html`<ul class="plain chips">
    ${names.map(
      ([name, colour]) =>
        html`<li key=${name} class="chips">
          <span class="colour-mark" style=${{ background: `var(--${colour})` }}></span>
          <span>${name}</span>
        </li>`,
    )}
  </ul>`

type BarScale = {
  highest: number
  width: number
  series: Props['series']
  write: (count: number) => string
}

function barView(bar: Bar, x: number, { highest, width, series, write }: BarScale): View {
  const { label, counts, href } = bar
  const words = counts.map((count, index) => `${write(count)} ${series[index]![0]}`)
  let top = height
  const parts = counts.map((count, index) => {
    const size = (count / highest) * height
    top -= size
    return (
      size > 0 &&
      html`<rect
        key=${index}
        fill=${`var(--${series[index]![1]})`}
        x=${x + (slot - width) / 2}
        y=${top}
        width=${width}
        height=${size}
      />`
    )
  })
  // The table has the same as links, for the keyboard.
  const open = href !== undefined && sumOf(bar) > 0 && (() => location.assign(href))
  return html`<g key=${label} class=${open ? 'opens' : undefined} onClick=${open || undefined}>
    <title>${label}: ${words.join(', ').toLowerCase()}</title>
    <rect class="bar-room" x=${x} y="0" width=${slot} height=${height} />
    ${parts}
  </g>`
}

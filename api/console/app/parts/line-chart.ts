import { formatShortDay, formatTime } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'

/** A number at times, oldest first, within the last `hours`. */
export type Series = {
  name: string
  at: readonly string[]
  values: readonly number[]
  hours: number
  /** A value in words. */
  format: (value: number) => string
}

/** The units of the drawing; the page stretches it. */
const [width, height] = [288, 100]
/** Two times further apart than this have nothing measured between them. */
const gapMs = 11 * 60_000

/** A line over time, without axes. */
export function sparkline({ at, values, hours, ...words }: Series): View {
  const end = Date.now()
  const highest = Math.max(1, ...values)
  const runs: string[][] = []
  let before = -Infinity
  values.forEach((value, index) => {
    const time = Date.parse(at[index]!)
    const x = Math.max(0, width * (1 - (end - time) / (hours * 3_600_000)))
    if (time - before > gapMs) runs.push([])
    runs.at(-1)!.push(`${x.toFixed(1)} ${(height * (1 - value / highest)).toFixed(1)}`)
    before = time
  })
  const lines = runs.map(points => `M${points.join('L')}h.1`)
  const areas = runs.map(
    points => `M${points[0]!.split(' ')[0]} ${height}L${points.join('L')}V${height}z`,
  )
  return html`<svg
    class="line-chart"
    viewBox=${`0 0 ${width} ${height}`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${summaryOf({ at, values, hours, ...words })}
  >
    <path class="line-area" d=${areas.join('')} />
    <path class="line" d=${lines.join('')} />
  </svg>`
}

/** `Jobs over 24 hours: at most 12 (26 Nov 2026, 14:05), 3 at last`. */
function summaryOf({ name, at, values, hours, format }: Series): string {
  if (values.length === 0) return `${name} over ${hours} hours: nothing was measured yet`
  const most = values.indexOf(Math.max(...values))
  const when = `${formatShortDay(at[most]!)}, ${formatTime(at[most]!)}`
  return `${name} over ${hours} hours: at most ${format(values[most]!)} (${when}), ${format(values.at(-1)!)} at last`
}

/** A line over time with its highest value and its ends in words. */
export const lineChart = (series: Series): View =>
  html`<figure class="panel stack-tight">
    <p><b>${series.name}</b></p>
    <div class="history-frame">
      <span class="history-max quiet" aria-hidden="true">
        ${series.format(Math.max(0, ...series.values))}
      </span>
      ${sparkline(series)}
    </div>
    <figcaption class="section-head quiet">
      <span>${series.hours} hours ago</span> <span>now</span>
    </figcaption>
  </figure>`

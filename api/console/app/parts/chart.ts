import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatCompact, formatCount, formatUtcDay, toIsoString } from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { selectField } from '#api/console/app/parts/fields.ts'

const dayMs = 24 * 3600 * 1000

/** A day with its numbers by name; `at` is its beginning in UTC, in epoch milliseconds. */
export type Day = Record<string, number> & { at: number }

/** Adds days without usage, which the service leaves out. */
export function fillMissingDays(
  { start, end }: { start: string; end: string },
  reportedDays: readonly { day: string }[],
  names: readonly string[],
): Day[] {
  const byDay = new Map(
    reportedDays.map(each => [each.day, each as unknown as Record<string, number>]),
  )
  const days: Day[] = []
  const begin = Math.floor(Date.parse(start) / dayMs) * dayMs
  for (let at = begin; at <= Date.parse(end); at += dayMs) {
    const reported = byDay.get(toIsoString(at).slice(0, 10))
    days.push({ at, ...Object.fromEntries(names.map(name => [name, reported?.[name] ?? 0])) })
  }
  return days
}

export const daysField = (value: string, onValue: (value: string) => void): View =>
  selectField({
    label: 'Time',
    value,
    onValue,
    choices: [
      ['7', 'the last 7 days'],
      ['30', 'the last 30 days'],
      ['90', 'the last 90 days'],
      ['365', 'the last year'],
    ],
  })

/** A table that scrolls when it is too wide. The first cell is the row's header. */
export const table = (head: readonly string[], rows: readonly (readonly Children[])[]): View =>
  html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          ${head.map(name => html`<th key=${name} scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells, index) =>
            html`<tr key=${index}>
              ${cells.map((cell, index) => html`<td key=${index}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`

type Props = {
  days: Day[]
  /** The field of a day that is drawn. */
  metric: string
  name: string
}

const height = 220
const axisDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

function Chart({ days, metric, name }: Props): View {
  const container = useRef<HTMLDivElement>(null)
  useEffect(() => {
    let plot: uPlot | undefined
    let isUnmounted = false
    const draw = async (): Promise<void> => {
      const { default: Plot } = await import('uplot')
      if (isUnmounted || !container.current) return
      plot?.destroy()
      plot = new Plot(
        plotOptions(container.current, name, Plot),
        [days.map(({ at }) => at / 1000), days.map(day => day[metric] || null)],
        container.current,
      )
    }
    void draw()
    const sizeObserver = new ResizeObserver(() => {
      if (container.current) plot?.setSize({ width: container.current.clientWidth, height })
    })
    if (container.current) sizeObserver.observe(container.current)
    const darkScheme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = (): void => void draw()
    darkScheme.addEventListener('change', redraw)
    const themeObserver = new MutationObserver(redraw)
    themeObserver.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      isUnmounted = true
      plot?.destroy()
      sizeObserver.disconnect()
      themeObserver.disconnect()
      darkScheme.removeEventListener('change', redraw)
    }
  }, [days, metric])
  const valueOf = (day: Day): number => day[metric] ?? 0
  const total = days.reduce((sum, day) => sum + valueOf(day), 0)
  const busiest = days.reduce((one, other) => (valueOf(other) > valueOf(one) ? other : one))
  return html`<div
    class="chart"
    role="img"
    aria-label=${`${name}: ${formatCount(total)} in all, most on ${formatUtcDay(busiest.at)}`}
    ref=${container}
  ></div>`
}

/** A bar for each day, in the colours of the theme. */
export const chart = (days: Day[], metric: string, name: string): View =>
  renderComponent(Chart, { days, metric, name })

function plotOptions(container: HTMLElement, name: string, { paths }: typeof uPlot): uPlot.Options {
  const { color: inkColor } = getComputedStyle(container)
  const colors = getComputedStyle(container, '::before')
  const axis = {
    stroke: inkColor,
    grid: { stroke: colors.borderTopColor, width: 1 },
    ticks: { show: false },
  }
  return {
    width: container.clientWidth,
    height,
    tzDate: seconds => utcAsLocal(seconds),
    legend: { live: true },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        values: (_, times) => times.map(at => axisDay.format(utcAsLocal(at))),
      },
      {
        ...axis,
        size: 56,
        values: (_, values) =>
          values.map(value => (Number.isInteger(value) ? formatCompact(value) : '')),
      },
    ],
    series: [
      { label: 'Day', value: (_, at) => (at === null ? '–' : formatUtcDay(at * 1000)) },
      {
        label: name,
        stroke: colors.color,
        fill: colors.color,
        points: { show: false },
        paths: paths.bars!({ size: [0.7, 40], radius: 0.15 }),
        value: (_, value) => (value === null ? '–' : formatCompact(value)),
      },
    ],
  }
}

/** Shifts a time so that the local clock shows what the UTC clock showed. */
function utcAsLocal(seconds: number): Date {
  const date = new Date(seconds * 1000)
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000)
}

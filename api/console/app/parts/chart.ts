import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { dayMs, formatCompact, formatCount, formatUtcDay, isoDay } from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { selectField } from '#api/console/app/parts/fields.ts'

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
    const reported = byDay.get(isoDay(at))
    days.push({ at, ...Object.fromEntries(names.map(name => [name, reported?.[name] ?? 0])) })
  }
  return days
}

export const daysField = (value: string, onValue: (value: string) => void): View =>
  selectField({
    label: 'Time',
    value,
    onValue,
    choices: {
      '7': 'the last 7 days',
      '30': 'the last 30 days',
      '90': 'the last 90 days',
      '365': 'the last year',
    },
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
              ${cells.map((cell, index) => html`<td key=${index} data-name=${head[index]}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`

/** What is drawn of each day. */
export type Series = {
  /** The field of a day. */
  metric: string
  name: string
  /** A bar for each day, a line, or a line with what is below it filled. */
  shape: 'bars' | 'line' | 'area'
  /** A colour of CSS; that of data when missing. */
  colour?: string
  /** A line is told from others without its colour, too. */
  dash?: 'dashed' | 'dotted' | 'double'
  /** Writes a value; counts are shortened, when missing. */
  format?: ((value: number) => string) | undefined
}

type Props = {
  days: Day[]
  series: readonly Series[]
  /** What the chart shows, for screen readers. */
  label: string
}

const height = 220
/** A picture of fewer days says nothing. */
const drawnMin = 3
const axisDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

function Chart({ days, series, label }: Props): View {
  const container = useRef<HTMLDivElement>(null)
  useEffect(() => {
    let plot: uPlot | undefined
    let isUnmounted = false
    const draw = async (): Promise<void> => {
      const { default: Plot } = await import('uplot')
      if (isUnmounted || !container.current) return
      plot?.destroy()
      plot = new Plot(
        plotOptions(container.current, series, Plot),
        [days.map(({ at }) => at / 1000), ...series.map(one => valuesOf(days, one))],
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
  }, [days, JSON.stringify(series)])
  if (days.length < drawnMin) {
    return html`<div class="panel stack-tight">
      <p>${label}</p>
      ${table(
        ['Day', ...series.map(({ name }) => name)],
        days.map(day => [
          formatUtcDay(day.at),
          ...series.map(({ metric, format }) => (format ?? formatCount)(day[metric] ?? 0)),
        ]),
      )}
    </div>`
  }
  return html`<div class="chart" role="img" aria-label=${label} ref=${container}></div>`
}

/** A day without anything has no bar; a line goes on. */
const valuesOf = (days: readonly Day[], { metric, shape }: Series): (number | null)[] =>
  days.map(day => (shape === 'bars' ? day[metric] || null : (day[metric] ?? 0)))

/** Several series over the same days, named in a legend. */
export const seriesChart = (props: Props): View => renderComponent(Chart, props)

const dashes = { dashed: [10, 5], dotted: [2, 4], double: [12, 4, 2, 4] }

/** A colour as the canvas takes it: a variable or `light-dark()` as it is where the element stands. */
function resolveColour(container: HTMLElement, colour: string): string {
  const probe = document.createElement('span')
  probe.style.color = colour
  container.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function plotOptions(
  container: HTMLElement,
  series: readonly Series[],
  { paths }: typeof uPlot,
): uPlot.Options {
  const hasBars = series.some(({ shape }) => shape === 'bars')
  const format = series[0]?.format
  // An axis of counts has no fractions, and at least one.
  const tick = (value: number): string => (Number.isInteger(value) ? formatCompact(value) : '')
  const least = format ? 1e-6 : 1
  // A bar stands around its day: the first and the last need half a day more.
  const margin = hasBars ? dayMs / 2000 : 0
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
    legend: {
      live: true,
      // The border of a name's box has the dashes of its line.
      markers: { dash: (_, index) => series[index - 1]?.dash ?? 'solid' },
    },
    cursor: { y: false, drag: { x: false, y: false } },
    // Without a pointer the legend tells the last day.
    hooks: {
      ready: [plot => plot.setLegend({ idx: plot.data[0].length - 1 })],
      setCursor: [
        plot => plot.cursor.idx == null && plot.setLegend({ idx: plot.data[0].length - 1 }),
      ],
    },
    scales: {
      x: { range: (_, min, max) => [min - margin, max + margin] },
      y: { range: (_, __, max) => [0, Math.max(least, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        // A date of a phone's width has room beside the next.
        space: container.clientWidth < 480 ? 110 : 64,
        // A tick for each day at most: a day stands once.
        incrs: [1, 2, 7, 14, 30, 91, 365].map(days => days * (dayMs / 1000)),
        values: (_, times) => times.map(at => axisDay.format(utcAsLocal(at))),
      },
      {
        ...axis,
        size: 56,
        space: 44,
        values: (_, values) => values.map(format ?? tick),
      },
    ],
    series: [
      { label: 'Day', value: (_, at) => (at === null ? '–' : formatUtcDay(at * 1000)) },
      ...series.map(({ name, shape, colour, dash, format }): uPlot.Series => {
        const stroke = colour ? resolveColour(container, colour) : colors.color
        return {
          label: name,
          stroke,
          points: { show: false },
          value: (_, value) => (value === null ? '–' : (format ?? formatCompact)(value)),
          ...(shape === 'bars' && {
            fill: stroke,
            paths: paths.bars!({ size: [0.7, 40], radius: 0.15 }),
          }),
          ...(shape !== 'bars' && { width: 2, ...(dash && { dash: dashes[dash] }) }),
          ...(shape === 'area' && { fill: resolveColour(container, 'var(--data-soft)') }),
        }
      }),
    ],
  }
}

/** Shifts a time so that the local clock shows what the UTC clock showed. */
function utcAsLocal(seconds: number): Date {
  const date = new Date(seconds * 1000)
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000)
}

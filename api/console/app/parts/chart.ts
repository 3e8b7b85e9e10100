import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { html, type View } from '#api/console/app/html.ts'
import type { Day } from '#api/console/app/parts/days.ts'
import { formatCompact, pluralize, formatUtcDay } from '#api/console/app/format.ts'

type Props = {
  days: Day[]
  /** The field of a day that is drawn. */
  metric: string
  name: string
}

const height = 220
const axisDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** A bar for each day, in the colours of the theme. */
export function Chart({ days, metric, name }: Props): View {
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
    aria-label=${`${name}: ${pluralize(total, 'in all', 'in all')}, most on ${formatUtcDay(busiest.at)}`}
    ref=${container}
  ></div>`
}

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

/** A time whose local clock shows what the UTC clock shows at the given one. */
function utcAsLocal(seconds: number): Date {
  const date = new Date(seconds * 1000)
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000)
}

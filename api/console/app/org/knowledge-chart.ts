import { dayMs, formatCount, formatUtcDay, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import {
  fillMissingDays,
  seriesChart,
  table,
  type Day,
  type Series,
} from '#api/console/app/parts/chart.ts'
import { timeView } from '#api/console/app/parts/chips.ts'
import type { OrgOverviewAnswer, TagCounts } from '#api/contract/generated/types.ts'

/** Rows of the table: a year as weeks. */
const rowsMax = 60

/** A line in its colour for light and dark, and its dashes. */
const lines = [
  [285, undefined],
  [70, 'dashed'],
  [20, 'dotted'],
  [130, 'double'],
] as const

/** As many tags have a line of their own. */
export const chartedTags = lines.length

const tagLine = (metric: string, name: string, index: number): Series => {
  const [hue, dash] = lines[index % lines.length]!
  const colour = `light-dark(oklch(0.5 0.15 ${hue}), oklch(0.8 0.13 ${hue}))`
  return { metric, name, shape: 'line', colour, ...(dash && { dash }) }
}

/** The series of a chart with the counts that each begins with, before its first day. */
function seriesOf({ total, by_day }: OrgOverviewAnswer): {
  series: Series[]
  before: Record<string, number>
} {
  const tags = Object.entries(total.by_tag)
    .toSorted(([, few], [, many]) => many - few)
    .map(([tag], index) => [tag, tagLine(`tag:${tag}`, tag, index)] as const)
  const series: Series[] = [
    { metric: 'memories', name: 'All memories', shape: 'area' },
    ...tags.map(([, line]) => line),
    ...(total.other > 0
      ? [
          {
            metric: 'other',
            name: 'Other tags alone',
            shape: 'line',
            colour: 'var(--quiet)',
          } as const,
        ]
      : []),
    ...(total.untagged > 0
      ? [
          {
            metric: 'untagged',
            name: 'No tags',
            shape: 'line',
            colour: 'var(--line-strong)',
            dash: 'dashed',
          } as const,
        ]
      : []),
  ]
  const all = toMetrics(total)
  const sums = by_day.map(toMetrics)
  const before = Object.fromEntries(
    series.map(({ metric }) => {
      const since = sums.reduce((sum, day) => sum + (day[metric] ?? 0), 0)
      return [metric, Math.max(0, (all[metric] ?? 0) - since)]
    }),
  )
  return { series, before }
}

/** The counts as a chart names them: a tag may be called `other`. */
const toMetrics = ({ memories, untagged, other, by_tag }: TagCounts): Record<string, number> => ({
  memories,
  untagged,
  other,
  ...Object.fromEntries(Object.entries(by_tag).map(([tag, count]) => [`tag:${tag}`, count])),
})

/** What a team knew at the end of each day, by the day it was said: in all, and by tag. */
export function knowledgeChart(overview: OrgOverviewAnswer): View {
  const { total, by_day, since } = overview
  const { series, before } = seriesOf(overview)
  const names = series.map(({ metric }) => metric)
  const [first, last] = [by_day[0], by_day.at(-1)]
  // Nothing was known before: the chart begins a day ahead of the first memory.
  const start =
    before.memories === 0 && first ? Math.max(since, Date.parse(first.day) - dayMs) : since
  const end = Math.max(Date.now(), last ? Date.parse(last.day) : 0)
  const reported = by_day.map(({ day, ...counts }) => ({ day, ...toMetrics(counts) }))
  const days = runningTotals(
    fillMissingDays(
      { start: new Date(start).toISOString(), end: new Date(end).toISOString() },
      reported,
      names,
    ),
    before,
  )
  const added = total.memories - (before.memories ?? 0)
  const label =
    `What the team knows: ${pluralize(total.memories, 'memory', 'memories')}, ` +
    `${formatCount(added)} of them since ${formatUtcDay(start)}. The table below has the numbers.`
  return html`<div class="stack">
    ${seriesChart({ days, series, label })}
    <p class="quiet">
      By the day that it was said. A memory with several tags counts for each of them.
    </p>
    <details>
      <summary>The same in numbers</summary>
      ${table(
        ['At the end of', ...series.map(({ name }) => name)],
        tableDays(days).map(day => [
          timeView(day.at, formatUtcDay(day.at)),
          ...names.map(name => formatCount(day[name] ?? 0)),
        ]),
      )}
    </details>
  </div>`
}

function runningTotals(days: readonly Day[], before: Record<string, number>): Day[] {
  const sums = { ...before }
  return days.map(day => {
    for (const name of Object.keys(sums)) sums[name] = sums[name]! + (day[name] ?? 0)
    return { ...sums, at: day.at }
  })
}

/** Every day, or of a long time one in seven or thirty; the last one always, newest first. */
function tableDays(days: readonly Day[]): Day[] {
  const step = days.length <= rowsMax ? 1 : days.length <= rowsMax * 7 ? 7 : 30
  return days.filter((_, index) => (days.length - 1 - index) % step === 0).toReversed()
}

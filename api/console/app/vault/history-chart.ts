import { hrefTo } from '#api/console/app/address.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { stackedBars } from '#api/console/app/parts/stacked-bars.ts'
import { bucketDays, type Bucket } from '#api/console/app/vault/day-buckets.ts'
import type { DayCount } from '#api/contract/generated/types.ts'

/**
 * Memories by the time they happened: stacked bars, and the same as a table.
 *
 * @param options.linked the table leads to the timeline, which is that of the key of this tab
 */
export function historyChart(days: readonly DayCount[], { linked }: { linked: boolean }): View {
  const { unit, buckets } = bucketDays(days)
  const total = buckets.reduce((sum, bucket) => sum + sizeOf(bucket), 0)
  const busiest = buckets.reduce((one, other) => (sizeOf(other) > sizeOf(one) ? other : one))
  return stackedBars({
    series: [
      ['Said', 'data'],
      ['Reflections', 'reflection'],
    ],
    summary:
      `${pluralize(total, 'memory', 'memories')} by ${unit}, ` +
      `most in ${busiest.label}: ${formatCount(sizeOf(busiest))}`,
    note: html`<span>${`${formatCount(total)} in all, by ${unit}`}</span>`,
    bars: buckets.map(bucket => ({
      label: bucket.label,
      counts: [bucket.raw, bucket.reflections],
      href: linked ? timelineOf(bucket) : undefined,
    })),
  })
}

const sizeOf = ({ raw, reflections }: Bucket): number => raw + reflections

const timelineOf = ({ from, to }: Bucket): string => `${hrefTo('timeline')}?from=${from}&to=${to}`

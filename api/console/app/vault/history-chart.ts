import { hrefTo } from '#api/console/app/address.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { table } from '#api/console/app/parts/chart.ts'
import { formatCompact, formatCount, pluralize } from '#api/console/app/format.ts'
import { bucketDays, type Bucket } from '#api/console/app/vault/day-buckets.ts'
import type { DayCount } from '#api/contract/generated/types.ts'

/** The units of the drawing; the page stretches it. */
const height = 100
const slot = 10
const barsMin = 14

/**
 * Memories by the time they happened: stacked bars, and the same as a table.
 *
 * @param options.linked the table leads to the timeline, which is that of the key of this tab
 */
export function historyChart(days: readonly DayCount[], { linked }: { linked: boolean }): View {
  const { unit, buckets } = bucketDays(days)
  const highest = Math.max(1, ...buckets.map(({ raw, reflections }) => raw + reflections))
  // A few bars are as narrow as those of a fortnight.
  const width = slot * Math.min(0.8, buckets.length / barsMin)
  const total = buckets.reduce((sum, { raw, reflections }) => sum + raw + reflections, 0)
  let sum = 0
  const sums = buckets.map(bucket => (sum += sizeOf(bucket)))
  const busiest = buckets.reduce((one, other) => (sizeOf(other) > sizeOf(one) ? other : one))
  const summary =
    `${pluralize(total, 'memory', 'memories')} by ${unit}, ` +
    `most in ${busiest.label}: ${formatCount(sizeOf(busiest))}`
  return html`<figure class="panel stack-tight">
    <div class="history-frame">
      <span class="history-max quiet" aria-hidden="true">${formatCompact(highest)}</span>
      <svg
        class="history-bars"
        viewBox=${`0 0 ${buckets.length * slot} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label=${summary}
      >
        ${buckets.map((bucket, index) => bars(bucket, index * slot, { highest, width, linked }))}
        <path
          class="line"
          d=${`M0 ${height}L${sums.map((sum, index) => `${(index + 1) * slot} ${height * (1 - sum / total)}`).join('L')}`}
        />
      </svg>
    </div>
    <figcaption class="section-head quiet">
      <span>${buckets[0]!.label}</span>
      <span class="chips">
        ${chip('Said', 'data')} ${chip('Reflections', 'reflection')}
        <span class="line-key">in all, up to ${formatCount(total)}</span>
      </span>
      <span>${buckets.length > 1 && buckets.at(-1)!.label}</span>
    </figcaption>
    <details>
      <summary>The same in numbers</summary>
      ${table(
        ['When', 'Said', 'Reflections', 'In all'],
        buckets
          .map((bucket, index) => [bucket, sums[index]!] as const)
          .filter(([bucket]) => sizeOf(bucket) > 0)
          .map(([bucket, sum]) => [
            linked ? html`<a href=${timelineOf(bucket)}>${bucket.label}</a>` : bucket.label,
            formatCount(bucket.raw),
            formatCount(bucket.reflections),
            formatCount(sum),
          ]),
      )}
    </details>
  </figure>`
}

const sizeOf = ({ raw, reflections }: Bucket): number => raw + reflections

type BarScale = { highest: number; width: number; linked: boolean }

function bars(bucket: Bucket, x: number, { highest, width, linked }: BarScale): View {
  const share = (count: number): number => (count / highest) * height
  const raw = share(bucket.raw)
  const reflections = share(bucket.reflections)
  const words = `${bucket.label}: ${formatCount(bucket.raw)} said, ${pluralize(bucket.reflections, 'reflection')}`
  const bar = (colour: string, y: number, size: number): View | false =>
    size > 0 &&
    html`<rect fill=${colour} x=${x + (slot - width) / 2} y=${y} width=${width} height=${size} />`
  // The table has the same as links, for the keyboard.
  const open = linked && sizeOf(bucket) > 0 && (() => location.assign(timelineOf(bucket)))
  return html`<g
    key=${bucket.from}
    class=${open ? 'opens' : undefined}
    onClick=${open || undefined}
  >
    <title>${words}</title>
    <rect class="bar-room" x=${x} y="0" width=${slot} height=${height} />
    ${bar('var(--data)', height - raw, raw)}
    ${bar('var(--reflection)', height - raw - reflections, reflections)}
  </g>`
}

const timelineOf = ({ from, to }: Bucket): string => `${hrefTo('timeline')}?from=${from}&to=${to}`

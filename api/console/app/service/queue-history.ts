import { formatCount, formatSeconds } from '#api/console/app/format.ts'
import type { Series } from '#api/console/app/parts/line-chart.ts'
import { useCall, useRefresh } from '#api/console/app/queries.ts'
import type { QueueHistory, ReadQueueHistoryAnswer } from '#api/contract/generated/types.ts'

const hours = 24
/** A worker writes the depth of the queues down as often. */
const sampleMs = 300_000

/** The queues over the last day; undefined until they are loaded. */
export function useQueueHistory(): ReadQueueHistoryAnswer | undefined {
  const { answer, refetch } = useCall('GET /v1/operator/queues/history', { query: { hours } })
  useRefresh(refetch, sampleMs)
  return answer
}

const measures: Record<
  'jobs' | 'dead' | 'age',
  readonly [name: string, (queue: QueueHistory) => number[], (value: number) => string]
> = {
  jobs: [
    'Jobs that wait or run',
    ({ waiting, running }) => waiting.map((count, index) => count + running[index]!),
    formatCount,
  ],
  dead: ['Dead jobs', ({ dead }) => dead, formatCount],
  age: ['Age of the oldest that is due', queue => queue.oldest_seconds, formatSeconds],
}

/** One measure of a queue over the last day. */
export function queueSeries(
  history: ReadQueueHistoryAnswer | undefined,
  queue: string,
  measure: keyof typeof measures,
): Series {
  const [name, valuesOf, format] = measures[measure]
  const found = history?.items.find(item => item.name === queue)
  return { name, at: history?.at ?? [], values: found ? valuesOf(found) : [], hours, format }
}

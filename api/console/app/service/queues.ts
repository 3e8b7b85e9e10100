import { hrefTo } from '#api/console/app/address.ts'
import { formatCount, formatSeconds } from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { table } from '#api/console/app/parts/chart.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { sparkline } from '#api/console/app/parts/line-chart.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useCall, useRefresh } from '#api/console/app/queries.ts'
import { queueSeries, useQueueHistory } from '#api/console/app/service/queue-history.ts'
import { QueueJobs } from '#api/console/app/service/queue-jobs.ts'
import type { ReadQueueHistoryAnswer, ServiceQueue } from '#api/contract/generated/types.ts'

/** @param id of the queue whose jobs are shown; undefined for all queues */
export const Queues = ({ id }: { id: string | undefined }): View =>
  id === undefined
    ? renderComponent(QueueList, {})
    : renderComponent(QueueJobs, { queue: id, key: id })

const refreshMs = 5_000

function QueueList(): View {
  const queues = useCall('GET /v1/operator/queues', {})
  useRefresh(queues.refetch, refreshMs)
  const history = useQueueHistory()
  return page({
    title: 'Queues',
    description: `What waits, runs and was given up, in all processes. Looked at every ${refreshMs / 1000} seconds, and written down every five minutes.`,
    actions: button('Refresh', queues.refetch),
    children: queryView(queues, 'the queues', ({ items }) =>
      table(
        ['Queue', 'Waiting', 'Running', 'Dead', 'Oldest due', 'Last 24 hours'],
        items
          .toSorted((one, other) => other.dead - one.dead || depthOf(other) - depthOf(one))
          .map(queue => queueCells(queue, history)),
      ),
    ),
  })
}

const depthOf = ({ waiting, retrying, running }: ServiceQueue): number =>
  waiting + retrying + running

const queueHref = (queue: string): string => hrefTo('service', 'queues', queue)

const queueCells = (queue: ServiceQueue, history?: ReadQueueHistoryAnswer): Children[] => {
  const { name, waiting, retrying, running, dead, oldest_seconds: oldest, longest_seconds } = queue
  return [
    html`<a href=${queueHref(name)}>${name}</a> ${waitNote(queue)}`,
    countCell(waiting + retrying),
    countCell(
      running,
      longest_seconds === null ? undefined : `for ${formatSeconds(longest_seconds)}`,
    ),
    dead > 0
      ? html`<a class="fault-words" href=${queueHref(`${name}.dead`)}>${formatCount(dead)}</a>`
      : countCell(0),
    oldest === null ? countCell(0) : formatSeconds(oldest),
    sparkline(queueSeries(history, name, 'jobs')),
  ]
}

const countCell = (count: number, words?: string): Children =>
  count === 0
    ? html`<span class="quiet dash">–</span>`
    : [formatCount(count), words && html` <span class="quiet">${words}</span>`]

/** `3 held for mongodb, 1 to be tried again`. */
function waitNote({ held, waits_for, retrying }: ServiceQueue): View | false {
  const notes: string[] = []
  if (held > 0)
    notes.push(`${formatCount(held)} held${waits_for === null ? '' : ` for ${waits_for}`}`)
  if (retrying > 0) notes.push(`${formatCount(retrying)} to be tried again`)
  return notes.length > 0 && html`<span class="quiet">${notes.join(', ')}</span>`
}

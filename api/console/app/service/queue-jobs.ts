import { hrefTo } from '#api/console/app/address.ts'
import { call, UserError } from '#api/console/app/api-call.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink } from '#api/console/app/parts/buttons.ts'
import { chip, stateChip, timeView } from '#api/console/app/parts/chips.ts'
import {
  actionButton,
  confirmButton,
  dialog,
  dialogButton,
  dialogForm,
} from '#api/console/app/parts/dialogs.ts'
import { textAreaField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { lineChart } from '#api/console/app/parts/line-chart.ts'
import { editableList, queryView } from '#api/console/app/parts/notes.ts'
import { selectBox, selectionBar, useSelection } from '#api/console/app/parts/selection.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import { queueSeries, useQueueHistory } from '#api/console/app/service/queue-history.ts'
import { showToast } from '#api/console/app/toasts.ts'
import type { QueueJob } from '#api/contract/generated/types.ts'

const deadSuffix = '.dead'

const verbs = { run: 'put back', cancel: 'cancelled', delete: 'deleted' } as const

type JobAction = keyof typeof verbs

/**
 * Lets jobs run, cancels or deletes them, and shows how many were changed and why others were not.
 *
 * @param ids undefined for all jobs of a queue of dead ones
 */
async function changeJobs(
  action: JobAction,
  queue: string,
  ids: readonly string[] | undefined,
): Promise<void> {
  let changed = 0
  let refused: string[] = []
  for (;;) {
    const answer = await call(`POST /v1/operator/queues/:queue/jobs/${action}`, {
      params: { queue },
      body: ids === undefined ? {} : { job_ids: [...ids] },
    })
    changed += answer.jobs
    refused = answer.refused.map(({ error }) => error)
    if (!answer.has_more || answer.jobs === 0) break
  }
  const done = `${pluralize(changed, 'job is', 'jobs are')} ${verbs[action]}.`
  const kept = refused.length === 0 ? '' : `${formatCount(refused.length)} not: ${refused[0]}`
  showToast([changed > 0 || kept === '' ? done : '', kept].filter(Boolean).join(' '))
}

/**
 * The jobs of a queue, or its dead ones.
 *
 * @param queue with `.dead` for dead ones
 */
export function QueueJobs({ queue }: { queue: string }): View {
  const list = usePages('GET /v1/operator/queues/:queue/jobs', {
    params: { queue },
    query: { limit: 50 },
  })
  const history = useQueueHistory()
  const selection = useSelection()
  const isDead = queue.endsWith(deadSuffix)
  const name = isDead ? queue.slice(0, -deadSuffix.length) : queue
  const change = async (action: JobAction, ids: readonly string[] | undefined): Promise<void> => {
    await changeJobs(action, queue, ids)
    selection.set(new Set())
    list.refetch()
  }
  const chosen = list.items.map(({ job_id }) => job_id).filter(id => selection.ids.has(id))
  return page({
    title: isDead ? `Dead jobs of ${name}` : `Jobs of ${name}`,
    description: html`${
        isDead
          ? 'Given up after all tries. One that is put back has all its tries again.'
          : 'Those that run, then the newest. Finished ones are deleted within two minutes.'
      } <a href=${hrefTo('service', 'queues')}>All queues</a>`,
    actions: html`${button('Refresh', list.refetch)}
    ${
      isDead
        ? list.items.length > 0 &&
          html`${actionButton('Put back all', { act: () => change('run', undefined) })}
          ${deleteButton('Delete all', 'all dead jobs of the queue', () => change('delete', undefined))}`
        : html`${buttonLink('Dead jobs', hrefTo('service', 'queues', `${name}${deadSuffix}`))}
          ${dialogButton('Send a job', onClose =>
            renderComponent(SendForm, { queue, onClose, onSent: list.refetch }),
          )}`
    }`,
    children: html`<div class="halves">
        ${(isDead ? (['dead'] as const) : (['jobs', 'age'] as const)).map(measure =>
          lineChart(queueSeries(history, name, measure)),
        )}
      </div>
      ${editableList(list, {
        what: 'jobs',
        empty: isDead
          ? ['No dead jobs', 'Nothing was given up.']
          : ['No jobs', 'Nothing waits or runs.'],
        key: ({ job_id }) => job_id,
        main: job => html`${jobView(job, isDead && selectBox(selection, job.job_id, job.job_id))}`,
        actions: job => jobActions(job, action => change(action, [job.job_id])),
      })}
      ${selectionBar(selection, {
        chosen: chosen.length === 0 ? '' : pluralize(chosen.length, 'job'),
        label: 'Selected jobs',
        actions: html`${actionButton('Put back selected', { act: () => change('run', chosen) })}
        ${deleteButton('Delete selected', pluralize(chosen.length, 'job'), () => change('delete', chosen))}`,
      })}`,
  })
}

const deleteButton = (
  label: string,
  what: string,
  act: () => Promise<void>,
  about?: string,
): View =>
  confirmButton(label, {
    kind: 'danger',
    title: `Delete ${what}?`,
    message:
      'What was promised with it is not done. An operation that cannot end without it is cancelled, and what its tries have stored is removed.',
    verb: 'Delete',
    act,
    about,
  })

const jobView = (job: QueueJob, box: View | false): View => {
  const { job_id: id, state, tries, error, created_at: created, starts_after: startsAfter } = job
  const isLater = state !== 'dead' && Date.parse(startsAfter) > Date.now()
  return html`<p class="row-title">
      ${box} <code>${id}</code> ${stateChip(state)}
      ${tries > 0 && chip(pluralize(tries, 'try', 'tries'))}
    </p>
    ${error !== '' && html`<p class="fault-words">${error}</p>`}
    <p class="quiet">
      ${`${state === 'dead' ? 'Given up' : 'Sent'} `}${timeView(created)}${isLater && html`, not before ${timeView(startsAfter)}`}
    </p>`
}

const unfinished = new Set<QueueJob['state']>(['waiting', 'retrying'])

function jobActions(job: QueueJob, change: (action: JobAction) => Promise<void>): View {
  const { job_id: about, state } = job
  const isDead = state === 'dead'
  const waits = unfinished.has(state)
  return html`${dialogButton('Show', onClose => renderComponent(JobDialog, { job, onClose }), { about })}
  ${
    (isDead || waits || state === 'failed' || state === 'cancelled') &&
    actionButton(isDead ? 'Put back' : 'Run now', { act: () => change('run'), about })
  }
  ${
    waits &&
    confirmButton('Cancel', {
      kind: 'danger',
      title: 'Cancel this job with its operation?',
      message: 'All jobs of its operation are removed, with what they have stored.',
      verb: 'Cancel it',
      act: () => change('cancel'),
      about,
    })
  }
  ${!waits && state !== 'running' && deleteButton('Delete', 'this job', () => change('delete'), about)}`
}

/** A job with what it was sent with. */
function JobDialog({ job, onClose }: { job: QueueJob; onClose: () => void }): View {
  const { queue, job_id: jobId } = job
  const detail = useCall('GET /v1/operator/queues/:queue/jobs/:jobId', { params: { queue, jobId } })
  return dialog({
    title: 'Job',
    wide: true,
    onClose,
    children: queryView(
      detail,
      'the job',
      ({ payload, operation_id: operation, started_at, finished_at, priority }) =>
        html`<div class="stack">
          <p><code>${jobId}</code> of ${queue}, priority ${priority}</p>
          ${operation !== null && html`<p>Operation <code>${operation}</code></p>`}
          ${started_at !== null && html`<p>Started ${timeView(started_at)}</p>`}
          ${finished_at !== null && html`<p>Finished ${timeView(finished_at)}</p>`}
          <p class="quiet">What it was sent with. Words of users are not shown.</p>
          <pre class="code" tabindex="0">${JSON.stringify(payload, null, 2)}</pre>
        </div>`,
    ),
  })
}

function parsePayload(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch {
    throw new UserError('The payload is no JSON object')
  }
}

type SendProps = { queue: string; onClose: () => void; onSent: () => void }

function SendForm({ queue, onClose, onSent }: SendProps): View {
  const { fields, of } = useFields({ payload: '{}' })
  return dialogForm({
    title: `Send a job to ${queue}`,
    verb: 'Send',
    onClose,
    act: async () => {
      const { job_id: id } = await call('POST /v1/operator/queues/:queue/jobs', {
        params: { queue },
        body: { payload: parsePayload(fields.payload) },
      })
      showToast(id === null ? 'One like it waits already.' : `Job ${id} is sent.`)
    },
    onDone: onSent,
    fields: textAreaField({
      label: 'Payload',
      rows: 8,
      ...of('payload'),
      hint: 'A JSON object, as the worker of the queue reads it.',
    }),
  })
}

import { useEffect, useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { stateChip } from '#api/console/app/parts/chips.ts'
import { selectField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatCount, toIsoString, formatDateTime } from '#api/console/app/format.ts'

type Operation = EndpointResponse<'GET /v1/operations/:id'>
type State = Operation['state']

const states: readonly (readonly [State | '', string])[] = [
  ['', 'all'],
  ['accepted', 'accepted'],
  ['running', 'running'],
  ['done', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
]

/** Accepted operations with their progress and outcome. */
export function Operations(): View {
  const [state, setState] = useState<State | ''>('')
  const { items, isLoading, fault, loadMore, refetch, updateItems } = usePagedList<Operation>(
    (cursor, signal) => {
      const query = { limit: 30, ...(state && { state }), ...(cursor && { cursor }) }
      return call('GET /v1/operations', { query }, signal)
    },
    [state],
  )
  const changed = (operation: Operation): void =>
    updateItems(all =>
      all.map(one => (one.operation_id === operation.operation_id ? operation : one)),
    )
  return page({
    title: 'Operations',
    description: 'Every piece of work the service promised to this account.',
    actions: html`<button type="button" class="button" onClick=${refetch}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${selectField({ label: 'State', value: state, onValue: setState, choices: states })}
      </div>
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote('No operations', 'Storing, uploads, imports and deletions are listed here.')
      }
      <ul class="plain rows">
        ${items.map(
          operation =>
            html`<li key=${operation.operation_id}>
              ${renderComponent(OperationRow, { operation, changed })}
            </li>`,
        )}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('operations') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

const unfinished = new Set<State>(['accepted', 'running'])
const pollIntervalMs = 2_000

type RowProps = { operation: Operation; changed: (operation: Operation) => void }

function OperationRow({ operation, changed }: RowProps): View {
  const { operation_id: id, kind, state, progress, session_id, created_at, outcome } = operation
  const actionState = useAction()
  useEffect(() => {
    if (!unfinished.has(state)) return undefined
    const timer = setTimeout(() => {
      // The next refresh retries what cannot be read now.
      call('GET /v1/operations/:id', { params: { id } }).then(changed, () => undefined)
    }, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [operation])
  const cancel = async (): Promise<void> => {
    changed(await call('DELETE /v1/operations/:id', { params: { id } }))
    showToast('The operation is cancelled.')
  }
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">${kind} ${stateChip(state)}</p>
      <p class="quiet">
        <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>
        ${session_id && `, session ${session_id}`}
      </p>
      ${unfinished.has(state) && progressBar(progress, kind)}
      ${outcome && state === 'failed' && html`<p class="fault-words">${errorMessage(outcome.body)}</p>`}
      ${faultNote(actionState.fault)}
      ${
        outcome &&
        html`<details>
          <summary>Outcome (${outcome.status})</summary>
          <pre class="code" tabindex="0">${JSON.stringify(outcome.body, null, 2)}</pre>
        </details>`
      }
    </div>
    ${
      state === 'accepted' &&
      canWrite() &&
      html`<button
        type="button"
        class="button"
        disabled=${actionState.isRunning}
        aria-label=${`Cancel ${kind} of ${formatDateTime(created_at)}`}
        onClick=${() => actionState.run(cancel)}
      >
        Cancel
      </button>`
    }
  </article>`
}

const progressBar = ({ done, total }: Operation['progress'], what: string): View =>
  html`<div class="progress">
    <progress
      max=${Math.max(1, total)}
      value=${done}
      aria-label=${`Progress of ${what}`}
    ></progress>
    <span class="quiet">${formatCount(done)} of ${formatCount(total)}</span>
  </div>`

const errorMessage = (body: object): string =>
  'error' in body && typeof body.error === 'string' ? body.error : 'It failed'

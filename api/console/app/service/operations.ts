import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { chip, stateChip } from '#api/console/app/parts/chips.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { formatCount, toIsoString, formatDateTime } from '#api/console/app/format.ts'

type Operation = EndpointResponse<'GET /v1/operator/operations'>['items'][number]
type State = Operation['state']

const states: readonly (readonly [State | '', string])[] = [
  ['', 'all'],
  ['accepted', 'accepted'],
  ['running', 'running'],
  ['done', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
]

/** Operations of all tenants, or of one: their progress, never their content. */
export function ServiceOperations({ account }: { account: string | undefined }): View {
  const [state, setState] = useState<State | ''>('')
  const [kind, setKind] = useState('')
  const debouncedKind = useDebounced(kind.trim())
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<Operation>(
    (cursor, signal) => {
      const query = {
        limit: 50,
        ...(state && { state }),
        ...(debouncedKind && { kind: debouncedKind }),
        ...(account && { account_id: account }),
        ...(cursor && { cursor }),
      }
      return call('GET /v1/operator/operations', { query }, signal)
    },
    [state, debouncedKind, account],
  )
  return page({
    title: 'Operations of the service',
    description: account
      ? html`Work of one tenant. <a href=${hrefTo('service', 'operations')}>Show all</a>`
      : 'Work that was promised to tenants, newest first.',
    actions: html`<button type="button" class="button" onClick=${refetch}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${selectField({ label: 'State', value: state, onValue: setState, choices: states })}
        ${textField({ label: 'Kind', type: 'search', value: kind, onValue: setKind, maxlength: 64, placeholder: 'ingest' })}
      </div>
      ${faultNote(fault, refetch)}
      ${!isLoading && !fault && items.length === 0 && noOperationsNote(loadMore !== undefined)}
      <ul class="plain rows">
        ${items.map(operation => html`<li key=${operation.operation_id}>${operationRow(operation)}</li>`)}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('operations') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

const noOperationsNote = (hasMore: boolean): View =>
  hasMore
    ? emptyNote('None among the newest', 'There are older ones to look through.')
    : emptyNote('No operations', 'Nothing matches.')

const operationRow = ({
  kind,
  state,
  status,
  email,
  created_at,
  finished_at,
  progress,
}: Operation) =>
  html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        ${kind} ${stateChip(state)} ${status !== null && status >= 400 && chip(status, 'bad')}
      </p>
      <p>${email}</p>
      <p class="quiet">
        <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>${
          finished_at && `, over ${formatDateTime(finished_at)}`
        }${
          state === 'running' &&
          progress.total > 0 &&
          `, ${formatCount(progress.done)} of ${formatCount(progress.total)}`
        }
      </p>
    </div>
  </article>`

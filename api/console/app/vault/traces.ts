import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatCount, formatDateTime, pluralize, toIsoString } from '#api/console/app/format.ts'
import { hrefTo, navigate } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote, moreButton } from '#api/console/app/parts/query-view.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { TraceDetail } from '#api/console/app/vault/trace-detail.ts'

type TraceSummary = EndpointResponse<'GET /v1/traces'>['items'][number]

/** The latest model calls, or which memories one of them was given. */
export function Traces({ trace }: { trace: string | undefined }): View {
  return trace === undefined
    ? renderComponent(TraceList, {})
    : renderComponent(TraceDetail, { trace, key: trace })
}

function TraceList(): View {
  const [id, setId] = useState('')
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<TraceSummary>(
    (cursor, signal) =>
      call('GET /v1/traces', { query: { limit: 30, ...(cursor && { cursor }) } }, signal),
    [],
  )
  return page({
    title: 'Answers',
    description: 'Model calls with memory, and which memories each answer was given with.',
    actions: html`<button type="button" class="button" onClick=${refetch}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <form class="panel search-line" onSubmit=${onSubmit(() => navigate('traces', id.trim()))}>
        ${textField({
          label: 'Trace of an answer',
          value: id,
          onValue: setId,
          required: true,
          maxlength: 64,
          placeholder: 'the header X-Memory-Trace',
        })}
        <button class="button button-main">Open</button>
      </form>
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote(
          'No calls',
          'A call of a model through this service is listed here for as long as the policy of the account says.',
        )
      }
      <ul class="plain rows">
        ${items.map(item => html`<li key=${item.trace_id}>${traceRow(item)}</li>`)}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('the calls') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

/** What a status of a call means. */
const statusWords: Record<TraceSummary['status'], string> = {
  ok: 'memories were given',
  none: 'nothing relevant was found',
  off: 'not asked for',
  degraded: 'went on without memory',
  aside: 'a call that a program made for itself',
}

function traceRow(item: TraceSummary): View {
  const { trace_id: id, created_at, model, memories, status, session_id } = item
  const when = formatDateTime(created_at)
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        <a href=${hrefTo('traces', id)} aria-label=${`${model}, ${when}`}>${model}</a>
      </p>
      <p class="quiet">
        <time datetime=${toIsoString(created_at)}>${when}</time>
        ${session_id && `, session ${session_id}`}
      </p>
      <p>
        ${memories > 0 ? pluralize(memories, 'memory', 'memories') : statusWords[status]},
        ${` ${formatCount(item.sent_bytes)} bytes sent`}
      </p>
    </div>
  </article>`
}

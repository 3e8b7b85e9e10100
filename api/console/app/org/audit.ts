import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { SharedHistory } from '#api/console/app/org/shared-history.ts'
import { toIsoString, formatDateTime } from '#api/console/app/format.ts'

type AuditEvent = EndpointResponse<'GET /v1/orgs/:orgId/audit'>['events'][number]
type AuditAction = AuditEvent['action']

const actions: readonly (readonly [AuditAction | '', string])[] = [
  ['', 'all'],
  ['create', 'created'],
  ['update', 'changed'],
  ['retag', 'retagged'],
  ['delete', 'deleted'],
]
const actionColors: Record<AuditAction, string> = {
  create: 'good',
  update: 'busy',
  retag: 'tag',
  delete: 'bad',
}

/** The audit log of the shared memories. */
export function Audit({ org }: OrgProps): View {
  const [actor, setActor] = useState('')
  const [action, setAction] = useState<AuditAction | ''>('')
  const [since, setSince] = useState('')
  const [limit, setLimit] = useState(50)
  const [opened, setOpened] = useState<string>()
  const debouncedActor = useDebounced(actor)
  const auditQuery = useQuery(
    signal => {
      const query = {
        limit,
        ...(debouncedActor && { actor: debouncedActor }),
        ...(action && { action }),
        ...(since && { since: Date.parse(since) }),
      }
      return call('GET /v1/orgs/:orgId/audit', { params: { orgId: org }, query }, signal)
    },
    [org, debouncedActor, action, since, limit],
  )
  return page({
    title: 'Audit',
    description: 'Every change of a shared memory, newest first.',
    children: html`<div class="stack">
      <div class="panel filters" role="group" aria-label="Filters">
        ${textField({ label: 'Actor', value: actor, onValue: setActor, maxlength: 320 })}
        ${selectField({ label: 'What', value: action, onValue: setAction, choices: actions })}
        ${textField({ label: 'Since', type: 'date', value: since, onValue: setSince })}
      </div>
      ${queryView(auditQuery, 'the audit', ({ events }) =>
        events.length === 0
          ? emptyNote('No changes yet', 'Each change of a shared memory is listed here.')
          : html`<ol class="plain rows">
              ${events.map(event => html`<li key=${event.event_id}>${eventRow(event, setOpened)}</li>`)}
            </ol>`,
      )}
      ${
        auditQuery.answer &&
        auditQuery.answer.count === limit &&
        limit < 500 &&
        html`<div class="more">
          <button type="button" class="button" onClick=${() => setLimit(500)}>
            Show up to 500
          </button>
        </div>`
      }
      ${
        opened !== undefined &&
        renderComponent(SharedHistory, {
          org,
          id: opened,
          onClose: () => setOpened(undefined),
          onRestored: auditQuery.refetch,
        })
      }
    </div>`,
  })
}

const eventRow = (
  { action, actor, mem_id, created_at }: AuditEvent,
  open: (id: string) => void,
): View =>
  html`<article class="row">
    <div class="row-main">
      <p>
        ${chip(actions.find(([name]) => name === action)![1], actionColors[action])} <b>${actor}</b>
      </p>
      <p class="quiet">
        <time datetime=${toIsoString(created_at)}>${formatDateTime(created_at)}</time>, memory${' '}
        <code>${mem_id.slice(-8)}</code>
      </p>
    </div>
    <button
      type="button"
      class="button"
      aria-label=${`History of memory ${mem_id.slice(-8)}`}
      onClick=${() => open(mem_id)}
    >
      History
    </button>
  </article>`

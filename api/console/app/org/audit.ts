import { useState } from 'preact/hooks'
import { filled } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { SharedHistory } from '#api/console/app/org/shared-card.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, timeView } from '#api/console/app/parts/chips.ts'
import { dialogButton } from '#api/console/app/parts/dialogs.ts'
import { filters, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useDebounced, useListing } from '#api/console/app/queries.ts'
import type { AuditEvent } from '#api/contract/generated/types.ts'

type AuditAction = AuditEvent['action']

const actions: Record<AuditAction, [label: string, kind: string]> = {
  create: ['created', 'good'],
  update: ['changed', 'busy'],
  retag: ['retagged', 'accent'],
  delete: ['deleted', 'bad'],
}

const actionChoices: (readonly [AuditAction | '', string])[] = [
  ['', 'all'],
  ...Object.entries(actions).map(([name, [label]]) => [name as AuditAction, label] as const),
]

const firstRows = 50
const rowsMax = 500

type Filters = { actor: string; action: AuditAction | ''; since: string }

export function Audit({ org }: OrgProps): View {
  const { fields, of } = useFields<Filters>({ actor: '', action: '', since: '' })
  const [limit, setLimit] = useState(firstRows)
  const { action, since } = fields
  const actor = useDebounced(fields.actor)
  const query = filled({ limit, actor, action, since: since && Date.parse(since) })
  const events = useListing(
    'GET /v1/orgs/:orgId/audit',
    { params: { orgId: org }, query },
    answer => answer.events,
  )
  return page({
    title: 'Audit',
    description: 'Every change of a shared memory, newest first.',
    children: html`${filters(
      textField({ label: 'Actor', ...of('actor'), maxlength: 320 }),
      selectField({ label: 'What', ...of('action'), choices: actionChoices }),
      textField({ label: 'Since', type: 'date', ...of('since') }),
    )}
    ${editableList(events, {
      what: 'the audit',
      empty: ['No changes yet', 'Each change of a shared memory is listed here.'],
      ordered: true,
      key: ({ event_id }) => event_id,
      main: eventView,
      actions: ({ mem_id: id }) =>
        dialogButton(
          'History',
          onClose =>
            renderComponent(SharedHistory, { org, id, onClose, onRestored: events.refetch }),
          { about: `memory ${id.slice(-8)}` },
        ),
    })}
    ${
      events.items.length === limit &&
      limit < rowsMax &&
      html`<div class="more">${button(`Show up to ${rowsMax}`, () => setLimit(rowsMax))}</div>`
    }`,
  })
}

const eventView = ({ action, actor, mem_id, created_at }: AuditEvent): View =>
  html`<p>${chip(...actions[action])} <b>${actor}</b></p>
    <p class="quiet">${timeView(created_at)}, memory <code>${mem_id.slice(-8)}</code></p>`

import { useState } from 'preact/hooks'
import { filled } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { SharedHistory } from '#api/console/app/org/shared-card.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, tagChips, timeView, type Labels } from '#api/console/app/parts/chips.ts'
import { dialogButton } from '#api/console/app/parts/dialogs.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useListing } from '#api/console/app/queries.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type { AuditEvent, NamedMemory } from '#api/contract/generated/types.ts'

type AuditAction = AuditEvent['action']

/** A change with the memory it is about; undefined where that is deleted. */
type Change = AuditEvent & { memory: NamedMemory | undefined }

const actions = words.audit as Labels<AuditAction>

/** What a person did, where the action alone would not say it: by kind and action. */
const decisions: Record<string, string | undefined> = words.decisions

const actionChoices: (readonly [AuditAction | '', string])[] = [
  ['', 'all'],
  ...Object.entries(actions).map(([name, [label]]) => [name as AuditAction, label] as const),
]

const firstRows = 50
const rowsMax = 500

type Filters = { actor: string; action: AuditAction | ''; since: string }

const unfiltered: Filters = { actor: '', action: '', since: '' }

export function Audit({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const [limit, setLimit] = useState(firstRows)
  const { actor, action, since } = fields
  const query = filled({ limit, actor, action, since: since && Date.parse(since) })
  const events = useListing(
    'GET /v1/orgs/:orgId/audit',
    { params: { orgId: org }, query },
    ({ events, memories }) => {
      const byId = new Map(memories.map(memory => [memory.mem_id, memory]))
      return events.map((event): Change => ({ ...event, memory: byId.get(event.mem_id) }))
    },
  )
  return page({
    title: 'Audit',
    description: 'Every change of a shared memory, newest first, with its words of now.',
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
      main: changeView,
      actions: ({ mem_id: id, memory }) =>
        dialogButton(
          'History',
          onClose =>
            renderComponent(SharedHistory, { org, id, onClose, onRestored: events.refetch }),
          { about: memory ? memory.text.slice(0, 60) : `memory ${id.slice(-8)}` },
        ),
    })}
    ${
      events.items.length === limit &&
      limit < rowsMax &&
      html`<div class="more">${button(`Show up to ${rowsMax}`, () => setLimit(rowsMax))}</div>`
    }`,
  })
}

function changeView({ action, kind, actor, memory, created_at }: Change): View {
  const [label, colour] = actions[action]
  const verb = (kind && decisions[`${kind} ${action}`]) ?? label
  return html`<p>
      <b>${actor}</b> ${chip(verb, colour)}${' '}
      ${memory ? possession(memory.author, actor) : 'a memory'}
    </p>
    ${
      memory
        ? html`<p class="memory-text">${memory.text}</p>
            <p>${tagChips(memory.tags)}</p>`
        : html`<p class="quiet">
            Deleted. Its history stays for 30 days, unless it was deleted for good.
          </p>`
    }
    <p class="quiet">${timeView(created_at)}</p>`
}

const possession = (author: string, actor: string): string =>
  author === actor ? 'a memory of their own' : `a memory of ${author}`

import { filled } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { seeAsHref, useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { sharedCard, SharedForm } from '#api/console/app/org/shared-card.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { dialogButton } from '#api/console/app/parts/dialogs.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'

const unfiltered = { q: '', tag: '', author: '', reviewed: '' }

export function SharedMemories({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const { reviewed, ...words } = fields
  const labels = useTags(org).items.map(({ label }) => label)
  const { updateItems, ...list } = usePages('GET /v1/orgs/:orgId/memories', {
    params: { orgId: org },
    query: { limit: 50, ...filled(words), ...(reviewed && { reviewed: reviewed === 'true' }) },
  })
  return page({
    title: 'Shared memories',
    description: 'Found in what members say, or seeded here.',
    actions: [
      buttonLink('See as a member', seeAsHref(org, filled({ query: fields.q }))),
      dialogButton(
        'Seed a memory',
        onClose => renderComponent(SharedForm, { org, onClose, onSaved: list.refetch }),
        { kind: 'main' },
      ),
    ],
    children: html`${filters(
      textField({ label: 'Search', type: 'search', ...of('q') }),
      selectField({
        label: 'Tag',
        ...of('tag'),
        choices: [['', 'all'], ...labels.map(label => [label, label] as const)],
      }),
      textField({ label: 'Author', ...of('author'), maxlength: 320 }),
      selectField({
        label: 'Reviewed',
        ...of('reviewed'),
        choices: [
          ['', 'all'],
          ['true', 'reviewed'],
          ['false', 'not reviewed'],
        ],
      }),
    )}
    ${listView(list, {
      what: 'shared memories',
      empty: ['No shared memories', 'Seed one, or let members talk with the keys you gave them.'],
      show: memories =>
        html`<ul class="plain">
          ${memories.map(
            memory =>
              html`<li key=${memory.mem_id}>
                ${sharedCard({
                  org,
                  memory,
                  onChanged: changed =>
                    updateItems(all =>
                      all.map(one => (one.mem_id === changed.mem_id ? changed : one)),
                    ),
                  onDeleted: id => updateItems(all => all.filter(one => one.mem_id !== id)),
                  onRestored: list.refetch,
                })}
              </li>`,
          )}
        </ul>`,
    })}`,
  })
}

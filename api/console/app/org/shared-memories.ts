import { filled } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { seeAsHref, tagFilter, useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { SeedFromFile } from '#api/console/app/org/seed-file.ts'
import { useSelectedShared } from '#api/console/app/org/selected-shared.ts'
import { sharedCard, SharedForm } from '#api/console/app/org/shared-card.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { dialogButton } from '#api/console/app/parts/dialogs.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { selectAllButton, useSelection } from '#api/console/app/parts/selection.ts'
import { usePages } from '#api/console/app/queries.ts'
import type { SharedMemory } from '#api/contract/generated/types.ts'

const unfiltered = { q: '', tag: '', author: '', reviewed: '' }

export function SharedMemories({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const { reviewed, ...words } = fields
  const tags = useTags(org).items
  const { updateItems, ...list } = usePages('GET /v1/orgs/:orgId/memories', {
    params: { orgId: org },
    query: { limit: 50, ...filled(words), ...(reviewed && { reviewed: reviewed === 'true' }) },
  })
  const selection = useSelection()
  const onChanged = (changed: readonly SharedMemory[]): void => {
    const byId = new Map(changed.map(memory => [memory.mem_id, memory]))
    updateItems(all => all.map(one => byId.get(one.mem_id) ?? one))
  }
  const onDeleted = (ids: ReadonlySet<string>): void =>
    updateItems(all => all.filter(({ mem_id }) => !ids.has(mem_id)))
  const onRestored = list.refetch
  const { bar, progress } = useSelectedShared({
    org,
    selection,
    memories: list.items,
    onChanged,
    onDeleted,
    onRestored,
  })
  return page({
    title: 'Shared memories',
    description: 'Found in what members say, or seeded here.',
    actions: [
      buttonLink('See as a member', seeAsHref(org, filled({ query: fields.q }))),
      dialogButton('Seed from a file', onClose =>
        renderComponent(SeedFromFile, { org, onClose, onSeeded: list.refetch }),
      ),
      dialogButton(
        'Seed a memory',
        onClose => renderComponent(SharedForm, { org, onClose, onSaved: list.refetch }),
        { kind: 'main' },
      ),
    ],
    children: html`${filters(
      textField({ label: 'Search', type: 'search', ...of('q') }),
      tagFilter(tags, of('tag')),
      textField({ label: 'Author', ...of('author'), maxlength: 320 }),
      selectField({
        label: 'Reviewed',
        ...of('reviewed'),
        choices: { '': 'all', true: 'reviewed', false: 'not reviewed' },
      }),
    )}
    ${progress}
    ${listView(list, {
      what: 'shared memories',
      empty: ['No shared memories', 'Seed one, or let members talk with the keys you gave them.'],
      show: memories =>
        html`<div class="actions">
            ${selectAllButton(
              selection,
              memories.map(({ mem_id }) => mem_id),
            )}
          </div>
          <ul class="plain">
            ${memories.map(
              memory =>
                html`<li key=${memory.mem_id}>
                  ${sharedCard({
                    org,
                    memory,
                    selection,
                    onChanged: changed => onChanged([changed]),
                    onDeleted: id => onDeleted(new Set([id])),
                    onRestored,
                  })}
                </li>`,
            )}
          </ul>`,
    })}
    ${bar}`,
  })
}

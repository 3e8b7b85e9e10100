import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { useTags, type OrgProps, type SharedMemory } from '#api/console/app/org/org-queries.ts'
import { SharedCard } from '#api/console/app/org/shared-card.ts'
import { SharedForm } from '#api/console/app/org/shared-form.ts'

type Filters = { q: string; tag: string; author: string; reviewed: '' | 'true' | 'false' }

/** The shared memories of an organization. */
export function SharedMemories({ org }: OrgProps): View {
  const [filters, setFilters] = useState<Filters>({ q: '', tag: '', author: '', reviewed: '' })
  const [seeding, setSeeding] = useState(false)
  const debouncedFilters = useDebounced(filters)
  const tags = useTags(org)
  const labels = (tags.answer ?? []).map(({ label }) => label)
  const { items, isLoading, fault, loadMore, refetch, updateItems } = usePagedList<SharedMemory>(
    (cursor, signal) => {
      const { q, tag, author, reviewed } = debouncedFilters
      const query = {
        limit: 50,
        ...(q && { q }),
        ...(tag && { tag }),
        ...(author && { author }),
        ...(reviewed && { reviewed: reviewed === 'true' }),
        ...(cursor && { cursor }),
      }
      return call('GET /v1/orgs/:orgId/memories', { params: { orgId: org }, query }, signal)
    },
    [org, debouncedFilters],
  )
  return page({
    title: 'Shared memories',
    description: 'Found in what members say, or seeded here.',
    actions: html`<button
      type="button"
      class="button button-main"
      onClick=${() => setSeeding(true)}
    >
      Seed a memory
    </button>`,
    children: html`<div class="stack">
      ${filterForm(filters, labels, setFilters)} ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote(
          'No shared memories',
          'Seed one, or let members talk with the keys you gave them.',
        )
      }
      <ul class="plain">
        ${items.map(
          memory =>
            html`<li key=${memory.mem_id}>
              ${renderComponent(SharedCard, {
                org,
                memory,
                onChanged: changed =>
                  updateItems(all =>
                    all.map(one => (one.mem_id === changed.mem_id ? changed : one)),
                  ),
                onDeleted: id => updateItems(all => all.filter(one => one.mem_id !== id)),
              })}
            </li>`,
        )}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('shared memories') : moreButton(loadMore, isLoading)}
      ${seeding && renderComponent(SharedForm, { org, onClose: () => setSeeding(false), onSaved: refetch })}
    </div>`,
  })
}

function filterForm(
  filters: Filters,
  labels: readonly string[],
  onFilters: (filters: Filters) => void,
): View {
  const set = (changed: Partial<Filters>): void => onFilters({ ...filters, ...changed })
  return html`<form
    class="panel filters"
    aria-label="Filters"
    onSubmit=${(event: Event) => event.preventDefault()}
  >
    ${textField({ label: 'Search', type: 'search', value: filters.q, onValue: q => set({ q }) })}
    ${selectField({
      label: 'Tag',
      value: filters.tag,
      onValue: tag => set({ tag }),
      choices: [['', 'all'] as const, ...labels.map(label => [label, label] as const)],
    })}
    ${textField({
      label: 'Author',
      value: filters.author,
      onValue: author => set({ author }),
      maxlength: 320,
    })}
    ${selectField({
      label: 'Reviewed',
      value: filters.reviewed,
      onValue: reviewed => set({ reviewed }),
      choices: [
        ['', 'all'],
        ['true', 'reviewed'],
        ['false', 'not reviewed'],
      ],
    })}
  </form>`
}

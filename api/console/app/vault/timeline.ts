import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { importances } from '#api/console/app/vault/search.ts'
import { fromListedMemory, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { formatCount, formatDay } from '#api/console/app/format.ts'

type Counts = { raw: number; tier2: number; tier3: number }
type Filters = {
  tier: string
  sort: string
  from: string
  to: string
  importance: string
  search: string
}

const unfiltered: Filters = {
  tier: '',
  sort: 'newest',
  from: '',
  to: '',
  importance: '',
  search: '',
}

/** The vault's memories by time or by importance, with filters. */
export function Timeline(): View {
  const [filters, setFilters] = useState(unfiltered)
  const [counts, setCounts] = useState<Counts>()
  // Debounced: no request for each key.
  const debouncedFilters = useDebounced(filters)
  const { items, isLoading, fault, loadMore, refetch, updateItems } = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const query = { ...toListQuery(debouncedFilters), limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      if (answer.tier_counts) setCounts(answer.tier_counts)
      return { items: answer.items.map(fromListedMemory), next_cursor: answer.next_cursor }
    },
    [debouncedFilters],
  )
  const set = (changed: Partial<Filters>): void => setFilters({ ...filters, ...changed })
  const days = filters.sort === 'importance' ? [{ day: '', memories: items }] : groupByDay(items)
  return page({
    title: 'Timeline',
    description: counts
      ? `${formatCount(counts.raw)} raw memories, ${formatCount(counts.tier2)} reflections, ${formatCount(counts.tier3)} high-level reflections`
      : 'Everything in the core vault',
    children: html`<form
        class="panel filters"
        aria-label="Filters"
        onSubmit=${(event: Event) => event.preventDefault()}
      >
        ${filterFields(filters, set)}
      </form>
      ${faultNote(fault, refetch)}
      ${days.map(
        ({ day, memories }) =>
          html`<section key=${day} class="day">
            ${day && html`<h2 class="day-name">${day}</h2>`}
            <ul class="plain">
              ${memories.map(
                memory =>
                  html`<li key=${memory.id}>
                    ${renderComponent(MemoryCard, {
                      memory,
                      dayKnown: day !== '',
                      onChange: (id, changed) =>
                        updateItems(all =>
                          all.map(one => (one.id === id ? { ...one, ...changed } : one)),
                        ),
                      onDeleted: id => updateItems(all => all.filter(one => one.id !== id)),
                    })}
                  </li>`,
              )}
            </ul>
          </section>`,
      )}
      ${!isLoading && !fault && items.length === 0 && noMemoriesNote(debouncedFilters)}
      ${isLoading && items.length === 0 ? loadingNote('memories') : moreButton(loadMore, isLoading)}`,
  })
}

const noMemoriesNote = (filters: Filters): View =>
  filters === unfiltered
    ? emptyNote('The vault is empty', 'What your product stores appears here.')
    : emptyNote('Nothing matches', 'Fewer filters show more.')

const filterFields = (filters: Filters, set: (changed: Partial<Filters>) => void): View[] => [
  textField({
    label: 'Text contains',
    type: 'search',
    value: filters.search,
    onValue: search => set({ search }),
    maxlength: 512,
  }),
  selectField({
    label: 'Tier',
    value: filters.tier,
    onValue: tier => set({ tier }),
    choices: [
      ['', 'all'],
      ['1', 'raw'],
      ['2', 'reflections'],
      ['3', 'high-level'],
    ],
  }),
  selectField({
    label: 'Importance',
    value: filters.importance,
    onValue: importance => set({ importance }),
    choices: importances,
  }),
  textField({ label: 'From', type: 'date', value: filters.from, onValue: from => set({ from }) }),
  textField({ label: 'To', type: 'date', value: filters.to, onValue: to => set({ to }) }),
  selectField({
    label: 'Order',
    value: filters.sort,
    onValue: sort => set({ sort }),
    choices: [
      ['newest', 'newest first'],
      ['oldest', 'oldest first'],
      ['importance', 'most important first'],
    ],
  }),
]

const toListQuery = ({ tier, sort, from, to, importance, search }: Filters) => ({
  ...(tier && { tier: Number(tier) as 1 | 2 | 3 }),
  ...(from && { from }),
  ...(to && { to }),
  ...(importance && { min_importance: Number(importance) }),
  ...(search && { search }),
  sort: sort === 'importance' ? ('importance' as const) : ('date' as const),
  order: sort === 'oldest' ? ('oldest_first' as const) : ('newest_first' as const),
})

function groupByDay(
  items: readonly DisplayedMemory[],
): { day: string; memories: DisplayedMemory[] }[] {
  const days: { day: string; memories: DisplayedMemory[] }[] = []
  for (const memory of items) {
    const day = formatDay(memory.at)
    if (days.at(-1)?.day === day) days.at(-1)!.memories.push(memory)
    else days.push({ day, memories: [memory] })
  }
  return days
}

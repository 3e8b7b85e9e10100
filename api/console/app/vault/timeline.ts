import { useEffect, useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { useAddress } from '#api/console/app/use-address.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { SelectionBar, useSelection, type Selection } from '#api/console/app/vault/selection.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { importances } from '#api/console/app/vault/search.ts'
import { fromListedMemory, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { formatDay, pluralize } from '#api/console/app/format.ts'

type Counts = { raw: number; tier2: number; tier3: number }

/** What the address keeps of a list: filters, and how many pages of it are shown. */
const unfiltered = {
  tier: '',
  sort: 'newest',
  from: '',
  to: '',
  importance: '',
  search: '',
  pages: '1',
}
type Filters = typeof unfiltered

/** Beyond it, a list that is opened again begins with its first pages. */
const pagesMax = 10

/** The vault's memories by time or by importance, with filters. */
export function Timeline(): View {
  const { fields, setFields, visits } = useAddress(unfiltered)
  const [filters, setFilters] = useState(fields)
  // Debounced: no request for each key.
  const debounced = useDebounced(filters)
  useEffect(() => setFilters(fields), [visits])
  useEffect(() => {
    if (debounced === filters) setFields(debounced)
  }, [debounced])
  const [counts, setCounts] = useState<Counts>()
  const { pages: _, ...asked } = fields
  const selection = useSelection()
  const list = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const query = { ...toListQuery(asked), limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      if (answer.tier_counts) setCounts(answer.tier_counts)
      return { items: answer.items.map(fromListedMemory), next_cursor: answer.next_cursor }
    },
    Object.values(asked),
    Math.min(pagesMax, Number(fields.pages) || 1),
  )
  const { items, isLoading, fault, loadMore, refetch, updateItems } = list
  const set = (changed: Partial<Filters>): void =>
    setFilters({ ...filters, ...changed, pages: '1' })
  const showMore =
    loadMore &&
    (() => {
      loadMore()
      setFields({ ...fields, pages: String(list.pages + 1) }, { replace: true })
    })
  const isFiltered = Object.keys(asked).some(
    name => name !== 'sort' && asked[name as keyof typeof asked] !== '',
  )
  return page({
    title: 'Timeline',
    description: describeList(counts, isFiltered),
    children: html`<form
        class="panel filters"
        aria-label="Filters"
        onSubmit=${(event: Event) => event.preventDefault()}
      >
        ${filterFields(filters, set)}
      </form>
      ${faultNote(fault, refetch)}
      ${memoryDays(items, { selection, byDay: fields.sort !== 'importance', updateItems })}
      ${!isLoading && !fault && items.length === 0 && noMemoriesNote(isFiltered)}
      ${isLoading && items.length === 0 ? loadingNote('memories') : moreButton(showMore, isLoading)}
      ${renderComponent(SelectionBar, {
        selection,
        memories: items,
        onDeleted: ids => updateItems(all => all.filter(({ id }) => !ids.has(id))),
      })}`,
  })
}

function describeList(counts: Counts | undefined, isFiltered: boolean): string {
  if (!counts) return 'Everything in the core vault'
  const sums = `${pluralize(counts.raw, 'raw memory', 'raw memories')}, ${pluralize(counts.tier2, 'reflection')}, ${pluralize(counts.tier3, 'high-level reflection')}`
  return isFiltered ? `Some of ${sums}` : sums
}

type DaysOptions = {
  selection: Selection
  byDay: boolean
  updateItems: (update: (items: DisplayedMemory[]) => DisplayedMemory[]) => void
}

const memoryDays = (
  items: DisplayedMemory[],
  { selection, byDay, updateItems }: DaysOptions,
): View[] =>
  (byDay ? groupByDay(items) : [{ day: '', memories: items }]).map(
    ({ day, memories }) =>
      html`<section key=${day} class="day">
        ${day && html`<h2 class="day-name">${day}</h2>`}
        <ul class="plain">
          ${memories.map(
            memory =>
              html`<li key=${memory.id}>
                ${renderComponent(MemoryCard, {
                  memory,
                  selection,
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
  )

const noMemoriesNote = (isFiltered: boolean): View =>
  isFiltered
    ? emptyNote('Nothing matches', 'Fewer filters show more.')
    : emptyNote('The vault is empty', 'What your product stores appears here.')

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

const toListQuery = ({ tier, sort, from, to, importance, search }: Omit<Filters, 'pages'>) => ({
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

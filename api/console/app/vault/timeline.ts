import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { formatDay, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import {
  bindFields,
  filters,
  selectField,
  textField,
  useFilters,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { useSelection } from '#api/console/app/parts/selection.ts'
import { usePagedList, type PagedList } from '#api/console/app/queries.ts'
import { addMemoryButton } from '#api/console/app/vault/add-memory.ts'
import { fromListed, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { memoryRows } from '#api/console/app/vault/memory-card.ts'
import { importances } from '#api/console/app/vault/search.ts'
import { selectedMemoriesBar } from '#api/console/app/vault/selected-memories.ts'
import type { ListQuery, TierCounts } from '#api/contract/generated/types.ts'

/** The fields of the list in the address of the page: filters, and how many pages are shown. */
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

/** The vault's memories by time or by importance, with filters. */
export function Timeline(): View {
  const { fields, setFields, form, set } = useFilters(unfiltered)
  const [counts, setCounts] = useState<TierCounts>()
  const { pages, ...asked } = fields
  const selection = useSelection()
  const list = useMemoryList(toListQuery(asked), pages, {
    onPages: pages => setFields({ ...fields, pages }, { replace: true }),
    onCounts: setCounts,
  })
  const isFiltered = Object.entries(asked).some(([name, value]) => name !== 'sort' && value !== '')
  return page({
    title: 'Timeline',
    description: describeList(counts, isFiltered),
    actions: addMemoryButton(list.refetch),
    children: html`${filterFields(form, changed => set({ ...changed, pages: '1' }))}
    ${listView(list, {
      what: 'memories',
      empty: isFiltered
        ? ['Nothing matches', 'Fewer filters show more.']
        : ['The vault is empty', 'What your product stores appears here.'],
      show: items =>
        daysOf(items, fields.sort !== 'importance').map(
          ([day, memories]) =>
            html`<section key=${day} class="stack">
              ${day && html`<h2 class="day-name">${day}</h2>`}
              ${memoryRows(memories, { selection, dayKnown: day !== '', updateItems: list.updateItems })}
            </section>`,
        ),
    })}
    ${selectedMemoriesBar({
      selection,
      memories: list.items,
      onDeleted: ids => list.updateItems(all => all.filter(({ id }) => !ids.has(id))),
    })}`,
  })
}

/** A list that is opened again loads at most this many pages at once. */
const pagesMax = 10

type MemoryListEvents = {
  /** Receives the number of pages that are shown, after a click on the button for more. */
  onPages: (pages: string) => void
  onCounts?: (counts: TierCounts) => void
}

/** Loads memories of the core vault page by page. */
export function useMemoryList(
  query: Partial<ListQuery>,
  pages: string,
  { onPages, onCounts }: MemoryListEvents,
): PagedList<DisplayedMemory> {
  const list = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const request = { query: { ...query, limit: 50, ...(cursor && { cursor }) } }
      const answer = await call('GET /v1/memory/list', request, signal)
      if (answer.tier_counts) onCounts?.(answer.tier_counts)
      return { items: answer.items.map(fromListed), next_cursor: answer.next_cursor }
    },
    [JSON.stringify(query)],
    Math.min(pagesMax, Number(pages) || 1),
  )
  const { loadMore } = list
  const loadMoreAndKeep = (): void => {
    loadMore?.()
    onPages(String(list.pages + 1))
  }
  return { ...list, loadMore: loadMore && loadMoreAndKeep }
}

function describeList(counts: TierCounts | undefined, isFiltered: boolean): string {
  if (!counts) return 'Everything in the core vault'
  const sums = `${pluralize(counts.raw, 'raw memory', 'raw memories')}, ${pluralize(counts.tier2, 'reflection')}, ${pluralize(counts.tier3, 'high-level reflection')}`
  return `${isFiltered ? 'Some of the core vault' : 'The core vault'}: ${sums}. Sessions have a page of their own.`
}

function filterFields(form: Filters, set: (changed: Partial<Filters>) => void): View {
  const of = bindFields(form, set)
  return filters(
    textField({ label: 'Text contains', type: 'search', ...of('search'), maxlength: 512 }),
    selectField({
      label: 'Tier',
      ...of('tier'),
      choices: [
        ['', 'all'],
        ['1', 'raw'],
        ['2', 'reflections'],
        ['3', 'high-level'],
      ],
    }),
    selectField({ label: 'Importance', ...of('importance'), choices: importances }),
    textField({ label: 'From', type: 'date', ...of('from') }),
    textField({ label: 'To', type: 'date', ...of('to') }),
    selectField({
      label: 'Order',
      ...of('sort'),
      choices: {
        newest: 'newest first',
        oldest: 'oldest first',
        importance: 'most important first',
      },
    }),
  )
}

const toListQuery = ({ tier, sort, from, to, importance, search }: Omit<Filters, 'pages'>) => ({
  ...(tier && { tier: Number(tier) as 1 | 2 | 3 }),
  ...(importance && { min_importance: Number(importance) }),
  ...filled({ from, to, search }),
  sort: sort === 'importance' ? ('importance' as const) : ('date' as const),
  order: sort === 'oldest' ? ('oldest_first' as const) : ('newest_first' as const),
})

/** Memories by their day, in the order of the list; one group without a name where days do not matter. */
const daysOf = (
  items: DisplayedMemory[],
  byDay: boolean,
): (readonly [day: string, memories: DisplayedMemory[]])[] =>
  byDay ? [...Map.groupBy(items, ({ at }) => formatDay(at))] : [['', items]]

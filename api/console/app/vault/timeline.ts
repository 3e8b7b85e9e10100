import { useState } from 'preact/hooks'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useListing } from '#api/console/app/listing.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { useLater } from '#api/console/app/later.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { importances } from '#api/console/app/vault/search.ts'
import { shownOfListed, type Shown } from '#api/console/app/vault/shown.ts'
import { count, dayOf } from '#api/console/app/words.ts'

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

/** The vault in the order of time, or of weight, with filters. */
export function Timeline(): View {
  const [filters, setFilters] = useState(unfiltered)
  const [counts, setCounts] = useState<Counts>()
  // What is typed is asked for when the typing rests.
  const asked = useLater(filters)
  const { items, waiting, fault, more, again, change } = useListing<Shown>(
    async (cursor, signal) => {
      const query = { ...queryOf(asked), limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      if (answer.tier_counts) setCounts(answer.tier_counts)
      return { items: answer.items.map(shownOfListed), next_cursor: answer.next_cursor }
    },
    [asked],
  )
  const set = (changed: Partial<Filters>): void => setFilters({ ...filters, ...changed })
  const days = filters.sort === 'importance' ? [{ day: '', memories: items }] : byDay(items)
  return page({
    title: 'Timeline',
    words: counts
      ? `${count(counts.raw)} raw memories, ${count(counts.tier2)} reflections, ${count(counts.tier3)} high-level reflections`
      : 'Everything in the core vault',
    children: html`<form
        class="panel filters"
        aria-label="Filters"
        onSubmit=${(event: Event) => event.preventDefault()}
      >
        ${filterFields(filters, set)}
      </form>
      ${faultNote(fault, again)}
      ${days.map(
        ({ day, memories }) =>
          html`<section key=${day} class="day">
            ${day && html`<h2 class="day-name">${day}</h2>`}
            <ul class="plain">
              ${memories.map(
                memory =>
                  html`<li key=${memory.id}>
                    ${part(MemoryCard, {
                      memory,
                      dayKnown: day !== '',
                      onChange: (id, changed) =>
                        change(all =>
                          all.map(one => (one.id === id ? { ...one, ...changed } : one)),
                        ),
                      onGone: id => change(all => all.filter(one => one.id !== id)),
                    })}
                  </li>`,
              )}
            </ul>
          </section>`,
      )}
      ${!waiting && !fault && items.length === 0 && nothing(asked)}
      ${waiting && items.length === 0 ? waitingNote('memories') : moreButton(more, waiting)}`,
  })
}

const nothing = (filters: Filters): View =>
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
  choiceField({
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
  choiceField({
    label: 'Importance',
    value: filters.importance,
    onValue: importance => set({ importance }),
    choices: importances,
  }),
  textField({ label: 'From', type: 'date', value: filters.from, onValue: from => set({ from }) }),
  textField({ label: 'To', type: 'date', value: filters.to, onValue: to => set({ to }) }),
  choiceField({
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

const queryOf = ({ tier, sort, from, to, importance, search }: Filters) => ({
  ...(tier && { tier: Number(tier) as 1 | 2 | 3 }),
  ...(from && { from }),
  ...(to && { to }),
  ...(importance && { min_importance: Number(importance) }),
  ...(search && { search }),
  sort: sort === 'importance' ? ('importance' as const) : ('date' as const),
  order: sort === 'oldest' ? ('oldest_first' as const) : ('newest_first' as const),
})

function byDay(items: readonly Shown[]): { day: string; memories: Shown[] }[] {
  const days: { day: string; memories: Shown[] }[] = []
  for (const memory of items) {
    const day = dayOf(memory.at)
    if (days.at(-1)?.day === day) days.at(-1)!.memories.push(memory)
    else days.push({ day, memories: [memory] })
  }
  return days
}

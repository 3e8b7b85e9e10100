import { useAddress } from '#api/console/app/use-address.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { selectField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  faultNote,
  moreButton,
  queryView,
  loadingNote,
} from '#api/console/app/parts/query-view.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { fromListedMemory, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { fetchDebt } from '#api/console/app/vault/vault-status.ts'

/** What the address keeps of the list: its tier, its order, and how many pages of it are shown. */
const firstView = { tier: '2', sort: 'date', pages: '1' }

/** Beyond it, a list that is opened again begins with its first pages. */
const pagesMax = 10

/** The reflections of the vault, and its reflection debt. */
export function Reflections(): View {
  const { fields, setFields } = useAddress(firstView)
  const tier = fields.tier === '3' ? '3' : '2'
  const sort: 'date' | 'importance' = fields.sort === 'importance' ? 'importance' : 'date'
  const set = (changed: Partial<typeof firstView>): void =>
    setFields({ ...fields, ...changed, pages: '1' })
  const debt = useQuery(fetchDebt, [])
  const listing = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const query = { tier: Number(tier) as 2 | 3, sort, limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      return { items: answer.items.map(fromListedMemory), next_cursor: answer.next_cursor }
    },
    [tier, sort],
    Math.min(pagesMax, Number(fields.pages) || 1),
  )
  const showMore =
    listing.loadMore &&
    (() => {
      listing.loadMore?.()
      setFields({ ...fields, pages: String(listing.pages + 1) }, { replace: true })
    })
  const { items, isLoading, fault, refetch, updateItems } = listing
  return page({
    title: 'Reflections',
    description:
      'Your product makes them with a model of its choice; Lineage shows what each came from.',
    children: html`<div class="stack-wide">
      ${section(
        'Waiting to be consolidated',
        queryView(debt, 'the debt', debtMeter),
        html`<a href=${hrefTo('consolidate')}>Consolidate</a>`,
      )}
      <div class="panel filters">
        ${selectField({
          label: 'Show',
          value: tier,
          onValue: tier => set({ tier }),
          choices: [
            ['2', 'reflections'],
            ['3', 'high-level reflections'],
          ],
        })}
        ${selectField({
          label: 'Order',
          value: sort,
          onValue: sort => set({ sort }),
          choices: [
            ['date', 'newest first'],
            ['importance', 'most important first'],
          ],
        })}
      </div>
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote(
          'No reflections of this kind yet',
          'They come from checking out a batch and committing what a model made of it.',
        )
      }
      <ul class="plain">
        ${items.map(
          memory =>
            html`<li key=${memory.id}>
              ${renderComponent(MemoryCard, {
                memory,
                onChange: (id, changed) =>
                  updateItems(all =>
                    all.map(one => (one.id === id ? { ...one, ...changed } : one)),
                  ),
                onDeleted: id => updateItems(all => all.filter(one => one.id !== id)),
              })}
            </li>`,
        )}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('reflections') : moreButton(showMore, isLoading)}
    </div>`,
  })
}

import { useState } from 'preact/hooks'
import { useQuery } from '#api/console/app/use-query.ts'
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

/** The reflections of the vault, and its reflection debt. */
export function Reflections(): View {
  const [tier, setTier] = useState<'2' | '3'>('2')
  const [sort, setSort] = useState<'date' | 'importance'>('date')
  const debt = useQuery(fetchDebt, [])
  const listing = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const query = { tier: Number(tier) as 2 | 3, sort, limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      return { items: answer.items.map(fromListedMemory), next_cursor: answer.next_cursor }
    },
    [tier, sort],
  )
  const { items, isLoading, fault, loadMore, refetch, updateItems } = listing
  return page({
    title: 'Reflections',
    description:
      'Your product makes them with a model of its choice; Lineage shows what each came from.',
    children: html`<div class="stack-wide">
      ${section('Waiting to be consolidated', queryView(debt, 'the debt', debtMeter))}
      <div class="panel filters">
        ${selectField({
          label: 'Show',
          value: tier,
          onValue: setTier,
          choices: [
            ['2', 'reflections'],
            ['3', 'high-level reflections'],
          ],
        })}
        ${selectField({
          label: 'Order',
          value: sort,
          onValue: setSort,
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
      ${isLoading && items.length === 0 ? loadingNote('reflections') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

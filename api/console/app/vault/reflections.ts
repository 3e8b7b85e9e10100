import { useState } from 'preact/hooks'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useListing } from '#api/console/app/listing.ts'
import { choiceField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  faultNote,
  moreButton,
  shown,
  waitingNote,
} from '#api/console/app/parts/states.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { shownOfListed, type Shown } from '#api/console/app/vault/shown.ts'
import { debtNow } from '#api/console/app/vault/standing.ts'

/** What was made of the raw memories, and what is still to be made. */
export function Reflections(): View {
  const [tier, setTier] = useState<'2' | '3'>('2')
  const [sort, setSort] = useState<'date' | 'importance'>('date')
  const debt = useAsked(debtNow, [])
  const listing = useListing<Shown>(
    async (cursor, signal) => {
      const query = { tier: Number(tier) as 2 | 3, sort, limit: 50, ...(cursor && { cursor }) }
      const answer = await call('GET /v1/memory/list', { query }, signal)
      return { items: answer.items.map(shownOfListed), next_cursor: answer.next_cursor }
    },
    [tier, sort],
  )
  const { items, waiting, fault, more, again, change } = listing
  return page({
    title: 'Reflections',
    words: 'Your product makes them with a model of its choice; Lineage shows what each came from.',
    children: html`<div class="stack-wide">
      ${section('Waiting to be consolidated', shown(debt, 'the debt', debtMeter))}
      <div class="panel filters">
        ${choiceField({
          label: 'Show',
          value: tier,
          onValue: setTier,
          choices: [
            ['2', 'reflections'],
            ['3', 'high-level reflections'],
          ],
        })}
        ${choiceField({
          label: 'Order',
          value: sort,
          onValue: setSort,
          choices: [
            ['date', 'newest first'],
            ['importance', 'most important first'],
          ],
        })}
      </div>
      ${faultNote(fault, again)}
      ${
        !waiting &&
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
              ${part(MemoryCard, {
                memory,
                onChange: (id, changed) =>
                  change(all => all.map(one => (one.id === id ? { ...one, ...changed } : one))),
                onGone: id => change(all => all.filter(one => one.id !== id)),
              })}
            </li>`,
        )}
      </ul>
      ${waiting && items.length === 0 ? waitingNote('reflections') : moreButton(more, waiting)}
    </div>`,
  })
}

import { useState } from 'preact/hooks'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { useListing } from '#api/console/app/listing.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { useTags, type OfOrg, type Shared } from '#api/console/app/org/own.ts'
import { SharedCard } from '#api/console/app/org/shared-card.ts'
import { SharedForm } from '#api/console/app/org/shared-form.ts'

type Filters = { q: string; tag: string; author: string; reviewed: '' | 'true' | 'false' }

/** What a team remembers together. */
export function SharedMemories({ org }: OfOrg): View {
  const [filters, setFilters] = useState<Filters>({ q: '', tag: '', author: '', reviewed: '' })
  const [seeding, setSeeding] = useState(false)
  const asked = useLater(filters)
  const tags = useTags(org)
  const labels = (tags.answer ?? []).map(({ label }) => label)
  const { items, waiting, fault, more, again, change } = useListing<Shared>(
    (cursor, signal) => {
      const { q, tag, author, reviewed } = asked
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
    [org, asked],
  )
  const set = (changed: Partial<Filters>): void => setFilters({ ...filters, ...changed })
  return page({
    title: 'Shared memories',
    words: 'Found in what members say, or seeded here.',
    actions: html`<button
      type="button"
      class="button button-main"
      onClick=${() => setSeeding(true)}
    >
      Seed a memory
    </button>`,
    children: html`<div class="stack">
      <form
        class="panel filters"
        aria-label="Filters"
        onSubmit=${(event: Event) => event.preventDefault()}
      >
        ${textField({ label: 'Search', type: 'search', value: filters.q, onValue: q => set({ q }) })}
        ${choiceField({
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
        ${choiceField({
          label: 'Reviewed',
          value: filters.reviewed,
          onValue: reviewed => set({ reviewed }),
          choices: [
            ['', 'all'],
            ['true', 'reviewed'],
            ['false', 'not reviewed'],
          ],
        })}
      </form>
      ${faultNote(fault, again)}
      ${
        !waiting &&
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
              ${part(SharedCard, {
                org,
                memory,
                onChanged: changed =>
                  change(all => all.map(one => (one.mem_id === changed.mem_id ? changed : one))),
                onGone: id => change(all => all.filter(one => one.mem_id !== id)),
              })}
            </li>`,
        )}
      </ul>
      ${waiting && items.length === 0 ? waitingNote('shared memories') : moreButton(more, waiting)}
      ${seeding && part(SharedForm, { org, onClose: () => setSeeding(false), onSaved: again })}
    </div>`,
  })
}

import { filled } from '#api/console/app/api-call.ts'
import { formatShortDay } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { filters, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import headings from '#shared/domain/profile-kinds.json' with { type: 'json' }
import type { ProfileAnswer, ProfileEntry } from '#api/contract/generated/types.ts'

/** Statements of the user about themselves that last, with the time they held. */
export function Profile(): View {
  const { fields, of } = useFields({ shown: 'current', day: '' })
  const profile = useCall('GET /v1/memory/profile', {
    query: { limit: 500, current: fields.shown === 'current', ...filled({ as_of: fields.day }) },
  })
  return page({
    title: 'Profile',
    description: 'What the user has said of themselves and for good, word for word.',
    children: html`${filters(
      selectField({
        label: 'Statements',
        ...of('shown'),
        choices: { current: 'that hold', all: 'also those replaced' },
      }),
      textField({ label: 'As of', type: 'date', ...of('day') }),
    )}
    ${queryView(profile, 'the profile', profileView)}`,
  })
}

export function profileView({ items, has_more }: ProfileAnswer): View {
  if (items.length === 0) {
    return emptyNote(
      'Nothing of this kind was said',
      'Sentences such as "I live in Porto", "I prefer tea" or "from now on …" appear here.',
    )
  }
  return html`<div class="stack-wide">
    ${[...Map.groupBy(items, ({ kind }) => kind)].map(([kind, entries]) =>
      section(
        headings[kind],
        html`<ul class="plain stack">
          ${entries.map(entryView)}
        </ul>`,
      ),
    )}
    ${has_more && html`<p class="quiet">The 500 first are shown.</p>`}
  </div>`
}

const entryView = ({ quote, since, until, source, name, author }: ProfileEntry): View =>
  html`<li>
    <q>${quote}</q>${' '}
    <span class="quiet">
      ${[author ?? name, `since ${formatShortDay(since)}`].filter(Boolean).join(', ')}
      ${until && ` until ${formatShortDay(until)}`}
    </span>
    ${source === 'org' && chip('team')} ${until && chip('replaced')}
  </li>`

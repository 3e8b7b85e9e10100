import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatShortDay } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useQuery } from '#api/console/app/use-query.ts'

type ProfileResponse = EndpointResponse<'GET /v1/memory/profile'>
type Entry = ProfileResponse['items'][number]

const headings: Record<Entry['kind'], string> = {
  instruction: 'Standing instructions',
  name: 'Names',
  role: 'Work and studies',
  place: 'Places',
  date: 'Dates',
  person: 'People and animals',
  preference: 'Preferences',
  possession: 'Possessions',
  change: 'Changes',
}

/** What the user has said of themselves and for good, with the time it held. */
export function Profile(): View {
  const [shown, setShown] = useState('current')
  const [day, setDay] = useState('')
  const profile = useQuery(
    signal =>
      call(
        'GET /v1/memory/profile',
        { query: { limit: 500, current: shown === 'current', ...(day && { as_of: day }) } },
        signal,
      ),
    [shown, day],
  )
  return page({
    title: 'Profile',
    description: 'What the user has said of themselves and for good, word for word.',
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${selectField({
          label: 'Statements',
          value: shown,
          onValue: setShown,
          choices: [
            ['current', 'that hold'],
            ['all', 'also those replaced'],
          ],
        })}
        ${textField({ label: 'As of', type: 'date', value: day, onValue: setDay })}
      </div>
      ${queryView(profile, 'the profile', profileView)}
    </div>`,
  })
}

/** The statements of a profile by kind. */
export function profileView({ items, has_more }: ProfileResponse): View {
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

const entryView = ({ quote, since, until, source, name, author }: Entry): View =>
  html`<li>
    <q>${quote}</q>${' '}
    <span class="quiet">
      ${[author ?? name, `since ${formatShortDay(since)}`].filter(Boolean).join(', ')}
      ${until && ` until ${formatShortDay(until)}`}
    </span>
    ${source === 'org' && chip('team')} ${until && chip('replaced')}
  </li>`

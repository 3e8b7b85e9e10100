import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatDateTime, formatRelativeTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { actionButton, confirmButton } from '#api/console/app/parts/dialogs.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import type { ListSharedAnswer, SharedStatement } from '#api/contract/generated/types.ts'

/** What the team's memory has from a member, and whether it gets more. */
export function Shared(): View {
  const sharing = useCall('GET /v1/shares', { query: { limit: 1 } })
  return page({
    title: 'Shared by you',
    description: 'What the memory of your team has from you.',
    children: html`${queryView(sharing, 'whether you share', state => sharingSwitch(state, sharing.refetch))}
    ${section('From you', renderComponent(Statements, {}))}`,
  })
}

const sharingSwitch = (
  { shares, key_shares, private_key_at: since }: ListSharedAnswer,
  onChanged: () => void,
): View => {
  const toggle = actionButton(shares ? 'Share nothing' : 'Share', {
    act: () => call('PATCH /v1/shares', { body: { shares: !shares } }),
    onDone: onChanged,
    done: shares ? 'From now on nothing is shared.' : 'What you say is shared again.',
  })
  const title = html`<p class="row-title">
      ${shares && key_shares ? chip('shared', 'good') : chip('for you alone')}
      ${shares ? ' What you say may reach your team' : ' What you say is remembered for you alone'}
    </p>
    ${
      !key_shares &&
      html`<p class="quiet">
        Nothing that is said with this key is shared: your admin made it so.
      </p>`
    }`
  return html`${
    since !== null &&
    html`<p class="notice">
      ${`An admin has made a key to your own vault (${formatDateTime(since)}), which can read, store and delete there. Ask them why.`}
    </p>`
  }
  ${rows([['sharing', row(title, canWrite() && toggle)]])}`
}

function Statements(): View {
  const { updateItems, ...list } = usePages('GET /v1/shares', { query: { limit: 25 } })
  return html`<div class="stack">
    ${editableList(list, {
      what: 'what is shared',
      empty: ['Nothing is shared from you', 'Facts that are found in what you say appear here.'],
      ordered: true,
      key: ({ id }) => id,
      main: statementView,
      actions: ({ id, text }) =>
        canWrite() &&
        confirmButton('Take back', {
          about: text,
          title: 'Take this back?',
          message: html`<p>
            Your team no longer sees <b>${text}</b> as yours, for good. What others said too stays
            in their name, and your own vault is not changed.
          </p>`,
          act: () => call('DELETE /v1/shares/:statementId', { params: { statementId: id } }),
          onDone: () => updateItems(all => all.filter(one => one.id !== id)),
          done: 'It is taken back.',
        }),
    })}
  </div>`
}

const statementView = ({ text, said_at, current, author, tags }: SharedStatement): View =>
  html`<p class="row-title">${text}</p>
    ${current !== null && current !== text && html`<p class="quiet">Now: ${current} (${author})</p>`}
    <p class="quiet">
      ${tags ? tagChips(tags) : chip('not visible to you')} said ${formatRelativeTime(said_at)}
    </p>`

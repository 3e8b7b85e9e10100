import { useEffect, useState } from 'preact/hooks'
import { hrefTo, useAddress } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatDateRange, formatRelativeTime, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { timeView } from '#api/console/app/parts/chips.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { lineForm, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList, emptyNote, listView } from '#api/console/app/parts/notes.ts'
import { usePagedList, usePages } from '#api/console/app/queries.ts'
import { fromFound, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { exportFile } from '#api/console/app/vault/export.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { memoryRows } from '#api/console/app/vault/memory-card.ts'

/** The open session in the address of the page; without one all sessions are listed. */
const noSession = { session: '' }

/** The sessions of the vault, and the memories of one of them. */
export function Sessions(): View {
  const user = useVaultUser()
  const { fields, setFields, visits } = useAddress(noSession)
  const { session } = fields
  const [name, setName] = useState(session)
  useEffect(() => setName(session), [visits])
  const open = (session: string): void => {
    setName(session)
    setFields({ session })
  }
  return page({
    title: 'Sessions',
    description:
      'What was stored with a session id, X-Session-ID, lies apart from the rest of the vault: it is recalled in that session alone.',
    children: html`${
      session
        ? renderComponent(OneSession, { session, user, key: session, onClose: () => open('') })
        : section('All sessions', renderComponent(AllSessions, { onOpen: open }))
    }
    ${lineForm(
      textField({
        label: 'Session',
        value: name,
        onValue: setName,
        required: true,
        maxlength: 256,
        placeholder: 'chat-42',
      }),
      button('Open'),
      () => open(name.trim()),
    )}`,
  })
}

function AllSessions({ onOpen }: { onOpen: (session: string) => void }): View {
  const list = usePages('GET /v1/memory/sessions', { query: { limit: 25 } })
  return html`<div class="stack">
    ${editableList(list, {
      what: 'sessions',
      empty: emptyNote(
        'No session here',
        html`A product names one when it stores: <code>X-Session-ID: chat-42</code>. Those of your
          users are on their pages, under <a href=${hrefTo('people')}>Users</a>.
          <a href="/guides/sessions">What a session hides</a>`,
      ),
      ordered: true,
      key: ({ session_id }) => session_id,
      main: ({ session_id, memories, first_at: from, last_at: to, stored_at }) =>
        html`<p class="row-title">${session_id}</p>
          <p class="quiet">
            ${pluralize(memories, 'memory', 'memories')}, ${formatDateRange({ from, to })}; last
            stored ${timeView(stored_at, formatRelativeTime(stored_at))}
          </p>`,
      actions: ({ session_id }) => button('Open', () => onOpen(session_id), { about: session_id }),
    })}
  </div>`
}

type OneProps = { session: string; user: string | undefined; onClose: () => void }

function OneSession({ session, user, onClose }: OneProps): View {
  const headers = { 'x-session-id': session }
  const { updateItems, ...list } = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const body = { from: '1970-01-01', max_tokens: 5_000, ...(cursor && { to: cursor }) }
      const answer = await call('POST /v1/memory/date-search', { body, headers }, signal, user)
      return {
        items: answer.memories.map(fromFound),
        next_cursor: answer.truncated ? (answer.returned?.from ?? null) : null,
      }
    },
    [session, user],
  )
  const clearButton = confirmButton('Clear', {
    title: 'Clear this session?',
    message: html`<p>
      Everything in <b>${session}</b> is deleted for good. The core vault stays.
    </p>`,
    act: () => call('DELETE /v1/memory', { headers }, undefined, user),
    onDone: () => updateItems(() => []),
    done: 'The session is cleared.',
  })
  return section(
    session,
    html`<div class="stack">
      ${listView(list, {
        what: 'the session',
        empty: ['Nothing in this session', 'It was cleared, or nothing was ever stored in it.'],
        show: items => memoryRows(items, { updateItems }),
      })}
    </div>`,
    html`${button('All sessions', onClose)}
    ${user === undefined && button('Export', () => exportFile({ session }))}
    ${canWrite() && clearButton}`,
  )
}

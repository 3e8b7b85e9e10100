import { useEffect, useState } from 'preact/hooks'
import { hrefTo, hrefWith, useAddress } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { canWrite, currentCredential } from '#api/console/app/credential.ts'
import { dayMs, formatDateRange, formatUtcDay, isoDay, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { agoView, avatar } from '#api/console/app/parts/chips.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { lineForm, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList, line, listView, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { useCall, usePagedList, usePages } from '#api/console/app/queries.ts'
import { fromFound, type DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { exportFile } from '#api/console/app/vault/export.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import { memoryRows } from '#api/console/app/vault/memory-card.ts'
import type { UsageRow } from '#api/contract/generated/types.ts'

/** The open session in the address of the page; without one all sessions are listed. */
const noSession = { session: '' }

/** The sessions of the vault, found by their ids, and the memories of one of them; for an owner also users who have some. */
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
  const id = name.trim()
  return page({
    title: 'Sessions',
    description: html`What was stored with a session id (<code>X-Session-ID</code>) lies apart from
    the rest of the vault: it is recalled in that session alone.`,
    children: html`${lineForm(
      textField({ ...words.fields.findSession, type: 'search', value: name, onValue: setName }),
      button('Find'),
      () => open(id),
    )}
    ${
      session
        ? renderComponent(OneSession, { session, user, key: session, onClose: () => open('') })
        : html`${!user && currentCredential()!.owner && renderComponent(UserSessions, { id })}
          ${section(user ? 'All sessions' : 'Sessions of this vault', renderComponent(AllSessions, { id, onOpen: open }))}`
    }`,
  })
}

/** A part of the ids that are shown. */
type ListProps = { id: string }

function AllSessions({ id, onOpen }: ListProps & { onOpen: (session: string) => void }): View {
  const list = usePages('GET /v1/memory/sessions', { query: { limit: 100 } })
  const items = list.items.filter(({ session_id }) => session_id.includes(id))
  return html`<div class="stack">
    ${editableList(
      { ...list, items },
      {
        what: 'sessions',
        empty: html`<p class="quiet">
          ${id ? 'No session of this id here.' : 'No session here.'} A product names one when it
          stores: <code>X-Session-ID: chat-42</code>.${' '}
          <a href="/guides/sessions">What a session hides</a>
        </p>`,
        ordered: true,
        key: ({ session_id }) => session_id,
        main: ({ session_id, memories, first_at: from, last_at: to, stored_at }) =>
          html`<p class="row-title">${session_id}</p>
            <p class="quiet">
              ${pluralize(memories, 'memory', 'memories')}, ${formatDateRange({ from, to })}; last
              stored ${agoView(stored_at)}
            </p>`,
        actions: ({ session_id }) =>
          button('Open', () => onOpen(session_id), { about: session_id }),
      },
    )}
  </div>`
}

/** Days for which the service tells the use of sessions. */
const usedDays = 30
const namedMax = 3

/** The users of the account who have used sessions of late, each leading to theirs. */
function UserSessions({ id }: ListProps): View | null {
  const query = {
    group: 'day,user,session',
    start: isoDay(Date.now() - usedDays * dayMs),
    limit: 500,
  }
  const report = useCall('GET /v1/account/usage/report', { query })
  return queryView(report, 'the sessions of users', ({ items }) => {
    const used = items.filter(
      ({ external_id, session_id }) => external_id != null && session_id?.includes(id),
    )
    const byUser = [...Map.groupBy(used, ({ external_id }) => external_id!)]
    if (byUser.length === 0) return html``
    return section(
      `Sessions that your users used in ${usedDays} days, last used first`,
      rows(byUser.map(([user, sessions]) => [user, row(userSessions(user, sessions))])),
      html`<a href=${hrefTo('people')}>Users</a>`,
    )
  })
}

/** @param rows a session of a day each, the newest day first */
function userSessions(user: string, rows: readonly UsageRow[]): View {
  const path = ['people', encodeURIComponent(user), 'sessions']
  const ids = [...new Set(rows.map(({ session_id }) => session_id!))]
  const last = rows[0]!.day!
  const rest = ids.length - namedMax
  const requests = rows.reduce((sum, row) => sum + row.requests, 0)
  return line(
    html`${avatar({ role: 'user', name: user })}
      <a class="row-title" href=${hrefTo(...path)}>${user}</a>
      <span class="quiet">
        ${ids.slice(0, namedMax).map(id => html`<a key=${id} href=${hrefWith({ session: id }, ...path)}>${id}</a> `)}
        ${rest > 0 && html`<a href=${hrefTo(...path)}>and ${rest} more</a>`}
      </span>`,
    [
      html`<span title="Calls name more sessions than those that something is stored in."
        >${`${pluralize(ids.length, 'session')} used, ${pluralize(requests, 'request')}`}</span
      >`,
      `last used ${last === isoDay(Date.now()) ? 'today' : formatUtcDay(last)}`,
    ],
    'line-session',
  )
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

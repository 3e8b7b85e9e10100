import { useEffect, useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, loadingNote } from '#api/console/app/parts/query-view.ts'
import { useAddress } from '#api/console/app/use-address.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { exportFile, latin1 } from '#api/console/app/vault/export.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import {
  fromDateSearchedMemory,
  type DisplayedMemory,
} from '#api/console/app/vault/displayed-memory.ts'
import { formatRelativeTime, pluralize, formatDateRange } from '#api/console/app/format.ts'
import type { ListedSession } from '#api/contract/generated/types.ts'

/** What the address keeps: the session that is open; empty, all of them are listed. */
const noSession = { session: '' }

/** The sessions of the vault, and the memories of one of them. */
export function Sessions(): View {
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
    description: 'A session is a vault of its own beside the core vault; your product names it.',
    children: html`<div class="stack-wide">
      <form class="panel search-line" onSubmit=${onSubmit(() => open(name.trim()))}>
        ${textField({
          label: 'Session',
          value: name,
          onValue: setName,
          required: true,
          maxlength: 256,
          placeholder: 'chat-42',
        })}
        <button class="button button-main">Open</button>
      </form>
      ${
        session
          ? renderComponent(OneSession, { session, key: session, onClose: () => open('') })
          : section('All sessions', renderComponent(AllSessions, { onOpen: open }))
      }
    </div>`,
  })
}

/** The sessions of the vault, the last used first. */
function AllSessions({ onOpen }: { onOpen: (session: string) => void }): View {
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<ListedSession>(
    (cursor, signal) => {
      const query = { limit: 25, ...(cursor && { cursor }) }
      return call('GET /v1/memory/sessions', { query }, signal)
    },
    [],
  )
  return html`<div class="stack">
    ${faultNote(fault, refetch)}
    ${
      !isLoading &&
      !fault &&
      items.length === 0 &&
      emptyNote('No session yet', 'Your product names one in X-Session-ID when it stores.')
    }
    <ol class="plain rows">
      ${items.map(item => html`<li key=${item.session_id} class="row">${sessionRow(item, onOpen)}</li>`)}
    </ol>
    ${isLoading && items.length === 0 ? loadingNote('sessions') : moreButton(loadMore, isLoading)}
  </div>`
}

const sessionRow = (
  { session_id: session, memories, first_at: from, last_at: to, stored_at }: ListedSession,
  open: (session: string) => void,
): View =>
  html`<div class="row-main">
      <p class="row-title">${session}</p>
      <p class="quiet">
        ${pluralize(memories, 'memory', 'memories')}, ${formatDateRange({ from, to })}; stored to
        <time datetime=${stored_at}> ${formatRelativeTime(stored_at)}</time>
      </p>
    </div>
    <button
      type="button"
      class="button"
      aria-label=${`Open ${session}`}
      onClick=${() => open(session)}
    >
      Open
    </button>`

function OneSession({ session, onClose }: { session: string; onClose: () => void }): View {
  const [clearing, setClearing] = useState(false)
  const headers = { 'x-session-id': latin1(session) }
  const { items, isLoading, fault, loadMore, refetch, updateItems } = usePagedList<DisplayedMemory>(
    async (cursor, signal) => {
      const body = { from: '1970-01-01', max_tokens: 5_000, ...(cursor && { to: cursor }) }
      const answer = await call('POST /v1/memory/date-search', { body, headers }, signal)
      return {
        items: answer.memories.map(fromDateSearchedMemory),
        next_cursor: answer.truncated ? (answer.returned?.from ?? null) : null,
      }
    },
    [session],
  )
  const actions = html`<button type="button" class="button" onClick=${onClose}>All sessions</button>
    <button type="button" class="button" onClick=${() => exportFile({ session })}>Export</button>
    ${
      canWrite() &&
      html`<button type="button" class="button" onClick=${() => setClearing(true)}>Clear</button>`
    }`
  return section(
    session,
    html`<div class="stack">
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        items.length === 0 &&
        emptyNote('Nothing in this session', 'It was cleared, or nothing was ever stored in it.')
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
      ${isLoading && items.length === 0 ? loadingNote('the session') : moreButton(loadMore, isLoading)}
      ${
        clearing &&
        confirmDialog({
          title: 'Clear this session?',
          message: html`<p>
            Everything in <b>${session}</b> is deleted for good. The core vault stays.
          </p>`,
          verb: 'Clear',
          action: async () => {
            await call('DELETE /v1/memory', { headers })
            updateItems(() => [])
            showToast('The session is cleared.')
          },
          onClose: () => setClearing(false),
        })
      }
    </div>`,
    actions,
  )
}

import { useState } from 'preact/hooks'
import { call } from '#api/console/app/call.ts'
import { mayWrite } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { useListing } from '#api/console/app/listing.ts'
import { say } from '#api/console/app/said.ts'
import { exportFile, latin1 } from '#api/console/app/vault/export.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { shownOfDated, type Shown } from '#api/console/app/vault/shown.ts'
import { agoOf, counted, spanOf } from '#api/console/app/words.ts'
import type { ListedSession } from '#api/contract/types.ts'

/** Memories that belong to one conversation, session by session. */
export function Sessions(): View {
  const [name, setName] = useState('')
  const [session, setSession] = useState('')
  return page({
    title: 'Sessions',
    words: 'A session is a vault of its own beside the core vault; your product names it.',
    children: html`<div class="stack-wide">
      <form class="panel search-line" onSubmit=${onSubmit(() => setSession(name.trim()))}>
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
          ? part(OneSession, { session, key: session, onClose: () => setSession('') })
          : section('All sessions', part(AllSessions, { onOpen: setSession }))
      }
    </div>`,
  })
}

/** The sessions of the vault, the one that was stored to last first. */
function AllSessions({ onOpen }: { onOpen: (session: string) => void }): View {
  const { items, waiting, fault, more, again } = useListing<ListedSession>((cursor, signal) => {
    const query = { limit: 25, ...(cursor && { cursor }) }
    return call('GET /v1/memory/sessions', { query }, signal)
  }, [])
  return html`<div class="stack">
    ${faultNote(fault, again)}
    ${
      !waiting &&
      !fault &&
      items.length === 0 &&
      emptyNote('No session yet', 'Your product names one in X-Session-ID when it stores.')
    }
    <ol class="plain rows">
      ${items.map(item => html`<li key=${item.session_id} class="row">${sessionRow(item, onOpen)}</li>`)}
    </ol>
    ${waiting && items.length === 0 ? waitingNote('sessions') : moreButton(more, waiting)}
  </div>`
}

const sessionRow = (
  { session_id: session, memories, first_at: from, last_at: to, stored_at }: ListedSession,
  open: (session: string) => void,
): View =>
  html`<div class="row-main">
      <p class="row-title">${session}</p>
      <p class="quiet">
        ${counted(memories, 'memory', 'memories')}, ${spanOf({ from, to })}; stored to
        <time datetime=${stored_at}> ${agoOf(stored_at)}</time>
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
  const { items, waiting, fault, more, again, change } = useListing<Shown>(
    async (cursor, signal) => {
      const body = { from: '1970-01-01', max_tokens: 5_000, ...(cursor && { to: cursor }) }
      const answer = await call('POST /v1/memory/date-search', { body, headers }, signal)
      return {
        items: answer.memories.map(shownOfDated),
        next_cursor: answer.truncated ? (answer.returned?.from ?? null) : null,
      }
    },
    [session],
  )
  const actions = html`<button type="button" class="button" onClick=${onClose}>All sessions</button>
    <button type="button" class="button" onClick=${() => exportFile({ session })}>Export</button>
    ${
      mayWrite() &&
      html`<button type="button" class="button" onClick=${() => setClearing(true)}>Clear</button>`
    }`
  return section(
    session,
    html`<div class="stack">
      ${faultNote(fault, again)}
      ${
        !waiting &&
        !fault &&
        items.length === 0 &&
        emptyNote('Nothing in this session', 'It was cleared, or nothing was ever stored in it.')
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
      ${waiting && items.length === 0 ? waitingNote('the session') : moreButton(more, waiting)}
      ${
        clearing &&
        confirm({
          title: 'Clear this session?',
          words: html`<p>
            Everything in <b>${session}</b> is deleted for good. The core vault stays.
          </p>`,
          verb: 'Clear',
          act: async () => {
            await call('DELETE /v1/memory', { headers })
            change(() => [])
            say('The session is cleared.')
          },
          onClose: () => setClearing(false),
        })
      }
    </div>`,
    actions,
  )
}

import { useState } from 'preact/hooks'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { mayWrite } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  faultNote,
  moreButton,
  shown,
  waitingNote,
} from '#api/console/app/parts/states.ts'
import { useListing } from '#api/console/app/listing.ts'
import { say } from '#api/console/app/said.ts'
import { exportFile, latin1 } from '#api/console/app/vault/export.ts'
import { MemoryCard } from '#api/console/app/vault/memory-card.ts'
import { shownOfDated, type Shown } from '#api/console/app/vault/shown.ts'

/** Memories that belong to one conversation, session by session. */
export function Sessions(): View {
  const [name, setName] = useState('')
  const [session, setSession] = useState('')
  const recent = useAsked(recentSessions, [])
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
      ${shown(recent, 'recent sessions', names =>
        names.length === 0
          ? html`<p class="quiet">No session was stored to lately. Older ones open by name.</p>`
          : html`<div class="chips" role="group" aria-label="Lately stored to">
              ${names.map(
                each =>
                  html`<button
                    type="button"
                    key=${each}
                    class="button"
                    aria-pressed=${each === session}
                    onClick=${() => {
                      setName(each)
                      setSession(each)
                    }}
                  >
                    ${each}
                  </button>`,
              )}
            </div>`,
      )}
      ${session && part(OneSession, { session, key: session })}
    </div>`,
  })
}

/** Sessions are not listed anywhere; the work that was asked for names them. */
async function recentSessions(signal: AbortSignal): Promise<string[]> {
  const { items } = await call('GET /v1/operations', { query: { limit: 200 } }, signal)
  const names = items.map(({ session_id }) => session_id).filter(name => name !== null)
  return [...new Set(names)].slice(0, 20)
}

function OneSession({ session }: { session: string }): View {
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
  const actions = html`<button
      type="button"
      class="button"
      onClick=${() => exportFile({ session })}
    >
      Export
    </button>
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
                onText: (id, text) =>
                  change(all => all.map(one => (one.id === id ? { ...one, text } : one))),
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

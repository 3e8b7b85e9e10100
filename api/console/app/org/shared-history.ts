import type { AnswerOf } from '#api/client/client.ts'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { emptyNote, faultNote, shown } from '#api/console/app/parts/states.ts'
import type { Shared } from '#api/console/app/org/own.ts'
import { say } from '#api/console/app/said.ts'
import { momentOf } from '#api/console/app/words.ts'

type Revision = AnswerOf<'GET /v1/orgs/:orgId/memories/:memId/history'>['revisions'][number]

type Props = {
  org: string
  id: string
  onClose: () => void
  onRestored: (memory: Shared) => void
}

/** What a shared memory said before and after each change; any of it can be brought back. */
export function SharedHistory({ org, id, onClose, onRestored }: Props): View {
  const params = { orgId: org, memId: id }
  const asked = useAsked(
    signal => call('GET /v1/orgs/:orgId/memories/:memId/history', { params }, signal),
    [org, id],
  )
  const doing = useDoing()
  const restore = async (event_id: string): Promise<void> => {
    const request = { params, body: { event_id } }
    onRestored(await call('POST /v1/orgs/:orgId/memories/:memId/restore', request))
    say('The memory is as it was.')
    asked.again()
  }
  return dialog({
    title: 'History',
    wide: true,
    onClose,
    children: html`<div class="stack">
      ${faultNote(doing.fault)}
      ${shown(asked, 'the history', ({ revisions }) =>
        revisions.length === 0
          ? emptyNote(
              'No changes in the last 30 days',
              'The audit goes back further, without texts.',
            )
          : html`<ol class="plain">
              ${revisions.map(
                revision =>
                  html`<li key=${revision.events[0]?.event_id} class="revision">
                    ${revisionView(revision)}
                    ${
                      revision.before &&
                      html`<button
                        type="button"
                        class="button"
                        disabled=${doing.busy}
                        onClick=${() => doing.run(() => restore(revision.events[0]!.event_id))}
                      >
                        Bring this back
                      </button>`
                    }
                  </li>`,
              )}
            </ol>`,
      )}
    </div>`,
  })
}

const revisionView = ({ kind, actor, created_at, before, after }: Revision): View =>
  html`<div class="stack">
    <p>${chip(kind, 'busy')} <b>${actor}</b> <span class="quiet">${momentOf(created_at)}</span></p>
    ${
      before &&
      html`<div class="revision-side">
        <span class="quiet">Before</span>
        <p class="memory-text">${before.text}</p>
        ${tagChips(before.tags)}
      </div>`
    }
    <div class="revision-side">
      <span class="quiet">After</span>
      ${
        after
          ? html`<p class="memory-text">${after.text}</p>
              ${tagChips(after.tags)}`
          : html`<p>Deleted</p>`
      }
    </div>
  </div>`

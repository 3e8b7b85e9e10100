import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { SharedMemory } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatDateTime } from '#api/console/app/format.ts'

type Revision = EndpointResponse<'GET /v1/orgs/:orgId/memories/:memId/history'>['revisions'][number]

type Props = {
  org: string
  id: string
  onClose: () => void
  onRestored: (memory: SharedMemory) => void
}

/** The versions of a shared memory, each of which can be restored. */
export function SharedHistory({ org, id, onClose, onRestored }: Props): View {
  const params = { orgId: org, memId: id }
  const query = useQuery(
    signal => call('GET /v1/orgs/:orgId/memories/:memId/history', { params }, signal),
    [org, id],
  )
  const actionState = useAction()
  const restore = async (event_id: string): Promise<void> => {
    const request = { params, body: { event_id } }
    onRestored(await call('POST /v1/orgs/:orgId/memories/:memId/restore', request))
    showToast('The memory is as it was.')
    query.refetch()
  }
  return dialog({
    title: 'History',
    wide: true,
    onClose,
    children: html`<div class="stack">
      ${faultNote(actionState.fault)}
      ${queryView(query, 'the history', ({ revisions }) =>
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
                        disabled=${actionState.isRunning}
                        onClick=${() => actionState.run(() => restore(revision.events[0]!.event_id))}
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
    <p>
      ${chip(kind, 'busy')} <b>${actor}</b> <span class="quiet">${formatDateTime(created_at)}</span>
    </p>
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

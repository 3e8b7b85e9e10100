import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { formatShortDay } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { useAction, useQuery } from '#api/console/app/use-query.ts'
import type { OrgReviewer } from '#api/contract/generated/types.ts'

/** Who may decide about the review queue beside the admin. */
export function OrgReviewers({ org }: OrgProps): View {
  const params = { orgId: org }
  const query = useQuery(
    async signal => (await call('GET /v1/orgs/:orgId/reviewers', { params }, signal)).reviewers,
    [org],
  )
  const [email, setEmail] = useState('')
  const [key, setKey] = useState<string>()
  const action = useAction()
  const add = async (): Promise<void> => {
    const body = { email: email.trim() }
    const { reviewer_key } = await call('POST /v1/orgs/:orgId/reviewers', { params, body })
    setKey(reviewer_key)
    setEmail('')
    query.refetch()
  }
  const remove = async (reviewer: OrgReviewer): Promise<void> => {
    const one = { orgId: org, reviewerId: reviewer.reviewer_id }
    await call('DELETE /v1/orgs/:orgId/reviewers/:reviewerId', { params: one })
    showToast(`${reviewer.email} reviews no more.`)
    query.refetch()
  }
  return html`<div class="panel stack">
    <p class="quiet">
      A reviewer sees the review queue and decides. They read no keys and change no policy.
    </p>
    ${queryView(query, 'reviewers', all =>
      all.length === 0
        ? emptyNote('No reviewers', 'The admin alone decides about the queue.')
        : html`<ul class="plain rows">
            ${all.map(
              reviewer =>
                html`<li key=${reviewer.reviewer_id} class="row">
                  ${reviewerRow(reviewer, () => void action.run(() => remove(reviewer)))}
                </li>`,
            )}
          </ul>`,
    )}
    <form class="search-line" onSubmit=${onSubmit(() => action.run(add))}>
      ${textField({ label: 'Email of a reviewer', type: 'email', value: email, onValue: setEmail, required: true, maxlength: 320 })}
      <button class="button" disabled=${action.isRunning}>Add</button>
    </form>
    ${faultNote(action.fault)}
    ${
      key !== undefined &&
      secretDialog({
        title: 'The credential of the reviewer',
        explanation: 'It opens this console at the review queue. It is shown only now.',
        secret: key,
        onClose: () => setKey(undefined),
      })
    }
  </div>`
}

const reviewerRow = (
  { email, masked_key: masked, created_at: at }: OrgReviewer,
  remove: () => void,
): View =>
  html`<div class="row-main">
      <p class="row-title">${email}</p>
      <p class="quiet"><code>${masked}</code> since ${formatShortDay(at)}</p>
    </div>
    <button type="button" class="button" aria-label=${`Remove ${email}`} onClick=${remove}>
      Remove
    </button>`

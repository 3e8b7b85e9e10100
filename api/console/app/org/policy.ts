import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { checkboxField, onSubmit } from '#api/console/app/parts/fields.ts'
import { redactionFields } from '#api/console/app/parts/redaction-fields.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'

type SavedPolicy = EndpointResponse<'GET /v1/orgs/:orgId/policy'>

/** The redaction policy of an organization. */
export function OrgPolicy({ org }: OrgProps): View {
  const params = { orgId: org }
  const query = useQuery(signal => call('GET /v1/orgs/:orgId/policy', { params }, signal), [org])
  return html`<div>
    ${queryView(query, 'the policy', saved =>
      renderComponent(PolicyForm, {
        org,
        saved,
        key: JSON.stringify(saved),
        onSaved: query.refetch,
      }),
    )}
  </div>`
}

function PolicyForm({
  org,
  saved,
  onSaved,
}: OrgProps & { saved: SavedPolicy; onSaved: () => void }): View {
  const [hasOwnPolicy, setOwn] = useState(saved.decided_by === 'organization')
  const [redaction, setRedaction] = useState(saved.redaction)
  const actionState = useAction()
  const save = async (): Promise<void> => {
    const { mode, kinds } = redaction
    const decided = { mode, ...(mode !== 'off' && { kinds }) }
    const body = { redaction: hasOwnPolicy ? decided : null }
    await call('PUT /v1/orgs/:orgId/policy', { params: { orgId: org }, body })
    showToast('The policy is saved.')
    onSaved()
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => actionState.run(save))}>
    ${checkboxField({
      label: 'Decide apart from the account',
      value: hasOwnPolicy,
      onValue: setOwn,
      hint: 'For what members store and for what they share.',
    })}
    ${hasOwnPolicy && redactionFields(redaction, setRedaction)} ${faultNote(actionState.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${actionState.isRunning}>
        ${actionState.isRunning ? 'Saving …' : 'Save the rules'}
      </button>
    </div>
  </form>`
}

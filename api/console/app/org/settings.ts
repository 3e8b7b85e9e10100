import { useState } from 'preact/hooks'
import { navigate } from '#api/console/app/hash-route.ts'
import { useAction, useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { selectField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { OrgExport } from '#api/console/app/org/export.ts'
import { OrgCost } from '#api/console/app/org/cost.ts'
import { OrgPipeline } from '#api/console/app/org/pipeline.ts'
import { OrgReviewers } from '#api/console/app/org/reviewers.ts'
import { OrgPolicy } from '#api/console/app/org/policy.ts'
import { useOrg, type OrgProps, type Org } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'

/** Edits the name and models of an organization, and deletes it. */
export function Settings({ org }: OrgProps): View {
  const query = useOrg(org)
  return page({
    title: 'Settings',
    description: query.answer?.name ?? 'Of the organization',
    children: queryView(query, 'settings', org =>
      renderComponent(SettingsForm, { org, key: org.updated_at, onSaved: query.refetch }),
    ),
  })
}

function SettingsForm({ org, onSaved }: { org: Org; onSaved: () => void }): View {
  const { org_id, name, processor_provider, extract_model, classify_model } = org
  const [fields, setFields] = useState({ name, processor_provider, extract_model, classify_model })
  const [removing, setRemoving] = useState(false)
  const keys = useQuery(signal => call('GET /v1/account/provider-keys', {}, signal), [])
  const providers = new Set([...(keys.answer?.providers ?? []), processor_provider])
  const actionState = useAction()
  const set = (changed: Partial<typeof fields>): void => setFields({ ...fields, ...changed })
  const save = async (): Promise<void> => {
    await call('PATCH /v1/orgs/:orgId', { params: { orgId: org_id }, body: fields })
    showToast('The settings are saved.')
    onSaved()
  }
  return html`<div class="stack-wide">
    <form class="panel stack" onSubmit=${onSubmit(() => actionState.run(save))}>
      ${textField({ label: 'Name', value: fields.name, onValue: name => set({ name }), required: true, maxlength: 200 })}
      ${selectField({
        label: 'Provider',
        value: fields.processor_provider,
        onValue: processor_provider => set({ processor_provider }),
        choices: [...providers].map(each => [each, each] as const),
        hint: 'Its models read what members say and decide what is shared.',
      })}
      ${textField({
        label: 'Model that extracts',
        value: fields.extract_model,
        onValue: extract_model => set({ extract_model }),
        required: true,
        maxlength: 256,
      })}
      ${textField({
        label: 'Model that classifies',
        value: fields.classify_model,
        onValue: classify_model => set({ classify_model }),
        required: true,
        maxlength: 256,
      })}
      ${faultNote(actionState.fault)}
      <div class="actions">
        <button class="button button-main" disabled=${actionState.isRunning}>
          ${actionState.isRunning ? 'Saving …' : 'Save'}
        </button>
      </div>
    </form>
    ${section('Pipeline', renderComponent(OrgPipeline, { org: org_id }))}
    ${section('Model calls of the last 30 days', renderComponent(OrgCost, { org: org_id }))}
    ${section('Reviewers', renderComponent(OrgReviewers, { org: org_id }))}
    ${section('Private data', renderComponent(OrgPolicy, { org: org_id }))}
    ${section('Export', renderComponent(OrgExport, { org: org_id }))}
    ${section(
      'Remove the organization',
      html`<div class="panel stack">
        <p class="quiet">
          Its keys, roles, users, tags and shared memories go, and the private vaults of its members
          with them.
        </p>
        <div class="actions">
          <button type="button" class="button button-danger" onClick=${() => setRemoving(true)}>
            Remove
          </button>
        </div>
      </div>`,
    )}
    ${removing && removeOrgDialog(org, () => setRemoving(false))}
  </div>`
}

const removeOrgDialog = ({ org_id, name }: Org, onClose: () => void): View =>
  confirmDialog({
    title: `Remove ${name}?`,
    message: html`<p>
      Everything of it is gone for all members at once, and cannot be brought back.
    </p>`,
    verb: 'Remove',
    confirmationText: 'remove',
    action: async () => {
      await call('DELETE /v1/orgs/:orgId', { params: { orgId: org_id } })
      showToast('The organization is removed.')
      navigate('orgs')
    },
    onClose,
  })

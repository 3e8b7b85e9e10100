import { useState } from 'preact/hooks'
import { navigate } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatShortDay } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { OrgDirectory } from '#api/console/app/org/directory.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { OrgCost, OrgPipeline } from '#api/console/app/org/pipeline.ts'
import { useProcessor } from '#api/console/app/org/processor-fields.ts'
import { downloadButton, button } from '#api/console/app/parts/buttons.ts'
import { confirmButton, actionButton, useSecret } from '#api/console/app/parts/dialogs.ts'
import {
  checkboxField,
  form,
  textField,
  useFields,
  onSubmit,
} from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { queryView, editableList, faultNote } from '#api/console/app/parts/notes.ts'
import { redactionFields, toRedactionBody } from '#api/console/app/parts/redaction-fields.ts'
import { useCall, useAction, useListing } from '#api/console/app/queries.ts'
import { useTeams } from '#api/console/app/teams.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'
import type { Organization, Policy } from '#api/contract/generated/types.ts'

/** Edits the name, models and rules of an organization, and deletes it. */
export function Settings({ org }: OrgProps): View {
  const query = useCall('GET /v1/orgs/:orgId', { params: { orgId: org } })
  const { list } = useTeams()!
  const onSaved = (): void => {
    query.refetch()
    list.refetch()
  }
  return page({
    title: 'Settings',
    description: 'Its name, models and rules.',
    children: queryView(query, 'settings', saved =>
      renderComponent(SettingsForm, { saved, key: saved.updated_at, onSaved }),
    ),
  })
}

function SettingsForm({ saved, onSaved }: { saved: Organization; onSaved: () => void }): View {
  const { org_id: org } = saved
  const [name, setName] = useState(saved.name)
  const processor = useProcessor(saved)
  const save = async (): Promise<void> => {
    await processor.prepare()
    const body = { name, ...processor.body }
    await call('PATCH /v1/orgs/:orgId', { params: { orgId: org }, body })
  }
  return html`<div class="stack-wide">
    ${form({
      verb: 'Save',
      kind: 'main',
      act: save,
      onDone: onSaved,
      done: 'The settings are saved.',
      children: [
        textField({ label: 'Name', value: name, onValue: setName, required: true, maxlength: 200 }),
        processor.view,
      ],
    })}
    ${section('Pipeline', renderComponent(OrgPipeline, { org }))}
    ${section('Model calls of the last 30 days', renderComponent(OrgCost, { org }))}
    ${section('Reviewers', renderComponent(OrgReviewers, { org }))}
    ${renderComponent(OrgDirectory, { org })}
    ${section('Private data', renderComponent(OrgPolicy, { org }))}
    ${section('Export', renderComponent(OrgExport, { org }))}
    ${section(
      'Remove the organization',
      html`<div class="panel stack">
        <p class="quiet">
          Its keys, roles, users, tags and shared memories go, and the private vaults of its members
          with them.
        </p>
        <div class="actions">
          ${confirmButton('Remove', {
            kind: 'danger',
            title: `Remove ${saved.name}?`,
            message:
              'Everything of it is gone for all members at once, and cannot be brought back.',
            confirmationText: 'remove',
            act: () => call('DELETE /v1/orgs/:orgId', { params: { orgId: org } }),
            done: 'The organization is removed.',
            onDone: () => navigate('orgs'),
          })}
        </div>
      </div>`,
    )}
  </div>`
}

function OrgPolicy({ org }: OrgProps): View | null {
  const query = useCall('GET /v1/orgs/:orgId/policy', { params: { orgId: org } })
  return queryView(query, 'the policy', saved =>
    renderComponent(PolicyForm, { org, saved, onSaved: query.refetch, key: JSON.stringify(saved) }),
  )
}

type PolicyProps = OrgProps & { saved: Policy; onSaved: () => void }

function PolicyForm({ org, saved, onSaved }: PolicyProps): View {
  const { fields, of } = useFields({
    isOwn: saved.decided_by === 'organization',
    redaction: saved.redaction,
  })
  return form({
    verb: 'Save the rules',
    kind: 'main',
    act: () =>
      call('PUT /v1/orgs/:orgId/policy', {
        params: { orgId: org },
        body: { redaction: fields.isOwn ? toRedactionBody(fields.redaction) : null },
      }),
    done: 'The policy is saved.',
    onDone: onSaved,
    children: [
      checkboxField({
        label: 'Decide apart from the account',
        ...of('isOwn'),
        hint: 'For what members store and for what they share.',
      }),
      fields.isOwn && redactionFields(of('redaction')),
    ],
  })
}

function OrgExport({ org }: OrgProps): View {
  const [vectors, setVectors] = useState(false)
  const path = `/v1/orgs/${org}/export?vectors=${vectors}`
  return html`<div class="panel stack">
    <p class="quiet">
      Settings, members, roles, tags, shared memories and the audit with its hashes; no key and
      nothing of a private vault.
    </p>
    ${checkboxField({
      label: 'With vectors',
      value: vectors,
      onValue: setVectors,
      hint: 'A much larger file.',
    })}
    <div class="actions">
      ${downloadButton({
        label: 'Download export',
        download: onBytes => downloadLines(path, 'organization', { onBytes }),
      })}
    </div>
  </div>`
}

/** Who may decide about the review queue apart from the admin. */
function OrgReviewers({ org }: OrgProps): View {
  const params = { orgId: org }
  const reviewers = useListing(
    'GET /v1/orgs/:orgId/reviewers',
    { params },
    ({ reviewers }) => reviewers,
  )
  const [email, setEmail] = useState('')
  const [showSecret, secretView] = useSecret()
  const { run, isRunning: disabled, fault } = useAction()
  const add = async (): Promise<void> => {
    const body = { email: email.trim() }
    const { reviewer_key } = await call('POST /v1/orgs/:orgId/reviewers', { params, body })
    showSecret({
      title: 'The credential of the reviewer',
      explanation: 'It opens this console at the review queue. It is shown only now.',
      secret: reviewer_key,
    })
    setEmail('')
    reviewers.refetch()
  }
  return html`<div class="panel stack">
    <p class="quiet">
      A reviewer sees the review queue and decides. They read no keys and change no policy.
    </p>
    ${editableList(reviewers, {
      what: 'reviewers',
      empty: ['No reviewers', 'The admin alone decides about the queue.'],
      key: ({ reviewer_id }) => reviewer_id,
      main: ({ email, masked_key, created_at }) =>
        html`<p class="row-title">${email}</p>
          <p class="quiet"><code>${masked_key}</code> since ${formatShortDay(created_at)}</p>`,
      actions: ({ reviewer_id: reviewerId, email }) =>
        actionButton('Remove', {
          act: () =>
            call('DELETE /v1/orgs/:orgId/reviewers/:reviewerId', {
              params: { orgId: org, reviewerId },
            }),
          onDone: reviewers.refetch,
          done: `${email} reviews no more.`,
          about: email,
        }),
    })}
    <form class="search-line" onSubmit=${onSubmit(() => run({ act: add }))}>
      ${textField({
        label: 'Email of a reviewer',
        type: 'email',
        value: email,
        onValue: setEmail,
        required: true,
        maxlength: 320,
      })}
      ${button('Add', undefined, { disabled })}
    </form>
    ${faultNote(fault)} ${secretView}
  </div>`
}

import { call, filled } from '#api/console/app/api-call.ts'
import { describeUse, formatRelativeTime, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useRoles, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  dialogButton,
  dialogForm,
  useSecret,
} from '#api/console/app/parts/dialogs.ts'
import {
  checkboxField,
  checkboxGroup,
  form,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { section } from '#api/console/app/parts/frame.ts'
import { editableList, queryView } from '#api/console/app/parts/notes.ts'
import { useCall, useListing } from '#api/console/app/queries.ts'
import type { Directory, GroupGrant, OrgRole } from '#api/contract/generated/types.ts'

/** How members come and go by an identity provider: signing in, what groups give, and tokens for SCIM. */
export function OrgDirectory({ org }: OrgProps): View {
  const query = useCall('GET /v1/orgs/:orgId/directory', { params: { orgId: org } })
  const roles = useRoles(org).items
  return html`<div class="stack-wide">
    ${section(
      'Signing in',
      queryView(query, 'how members sign in', saved =>
        renderComponent(SignInForm, { saved, key: JSON.stringify(saved), onSaved: query.refetch }),
      ),
    )}
    ${section(
      'Groups of your directory',
      queryView(query, 'the groups', saved =>
        renderComponent(Grants, { saved, roles, onSaved: query.refetch }),
      ),
    )}
    ${section('SCIM tokens', renderComponent(ScimTokens, { org }))}
  </div>`
}

type Props = { saved: Directory; onSaved: () => void }

function SignInForm({ saved, onSaved }: Props): View {
  const { fields, of } = useFields({
    required: saved.sign_in_required,
    hours: String(saved.sign_in_hours),
  })
  return form({
    verb: 'Save signing in',
    done: 'How members sign in is saved.',
    onDone: onSaved,
    act: () =>
      call('PUT /v1/orgs/:orgId/directory', {
        params: { orgId: saved.org_id },
        body: { sign_in_required: fields.required, sign_in_hours: Number(fields.hours) },
      }),
    children: [
      checkboxField({
        label: 'Members and reviewers have to sign in',
        ...of('required'),
        hint: 'At the login provider of the service. Keys that an admin has made for them open nothing then.',
      }),
      textField({
        label: 'A sign-in lasts, in hours',
        type: 'number',
        min: 1,
        max: 720,
        required: true,
        ...of('hours'),
      }),
    ],
  })
}

function Grants({ saved, roles, onSaved }: Props & { roles: OrgRole[] }): View {
  const { grants, groups, org_id: orgId } = saved
  const put = (changed: GroupGrant[]): Promise<unknown> =>
    call('PUT /v1/orgs/:orgId/directory', { params: { orgId }, body: { grants: changed } })
  const editor = (grant?: GroupGrant) => (onClose: () => void) =>
    renderComponent(GrantForm, {
      grant,
      roles,
      suggestions: groups.map(({ name }) => name),
      onClose,
      onSaved,
      put: made => put([...grants.filter(one => one !== grant), made]),
    })
  const nameOf = (id: string): string =>
    roles.find(({ role_id }) => role_id === id)?.name ?? 'a role that is gone'
  const list = { items: grants, isLoading: false, fault: undefined, loadMore: undefined }
  return html`<div class="panel stack">
    <p class="quiet">
      ${groups.length === 0 ? 'A group is one of SCIM, or of the claim of a sign-in.' : `The directory keeps ${groups.map(({ name, members }) => `${name} (${pluralize(members, 'member')})`).join(', ')}.`}
    </p>
    ${editableList(
      { ...list, refetch: onSaved },
      {
        what: 'what groups give',
        empty: [
          'Groups give nothing yet',
          'A group can give roles, and make its members reviewers.',
        ],
        key: ({ group }) => group,
        main: ({ group, role_ids: ids = [], reviews }) =>
          html`<p class="row-title">${group}</p>
            <p class="chips">
              ${ids.map(id => chip(nameOf(id), 'data'))} ${reviews && chip('reviews')}
            </p>`,
        actions: grant => [
          dialogButton('Edit', editor(grant), { about: grant.group }),
          confirmButton('Remove', {
            about: grant.group,
            title: `Take from ${grant.group} what it gives?`,
            message: 'Its members lose these roles with their next request.',
            act: () => put(grants.filter(one => one !== grant)),
            onDone: onSaved,
          }),
        ],
      },
    )}
    <div class="actions">${dialogButton('Add a group', editor())}</div>
  </div>`
}

type GrantFormProps = {
  grant: GroupGrant | undefined
  roles: OrgRole[]
  suggestions: string[]
  onClose: () => void
  onSaved: () => void
  put: (grant: GroupGrant) => Promise<unknown>
}

function GrantForm({ grant, roles, suggestions, onClose, onSaved, put }: GrantFormProps): View {
  type Draft = { group: string; role_ids: readonly string[]; reviews: boolean }
  const { fields, of } = useFields<Draft>({ group: '', role_ids: [], reviews: false, ...grant })
  return dialogForm({
    title: grant ? `What ${grant.group} gives` : 'Add a group',
    verb: 'Save',
    onClose,
    onDone: onSaved,
    act: () => put({ ...fields, group: fields.group.trim(), role_ids: [...fields.role_ids] }),
    fields: html`${textField({ label: 'Group', ...of('group'), required: true, maxlength: 256, suggestions })}
    ${checkboxGroup({
      label: 'Roles',
      ...of('role_ids'),
      choices: roles.map(role => [role.role_id, role.name] as const),
    })}
    ${checkboxField({ label: 'Its members review', ...of('reviews') })}`,
  })
}

/** Tokens by which a directory keeps members and groups. */
function ScimTokens({ org }: OrgProps): View {
  const params = { orgId: org }
  const route = 'GET /v1/orgs/:orgId/scim-tokens'
  const tokens = useListing(route, { params }, answer => answer.tokens)
  const [showSecret, secretView] = useSecret()
  const onMade = (secret: string): void =>
    showSecret({
      title: 'The token of the directory',
      explanation: 'It keeps the members and groups of this organization. It is shown only now.',
      secret,
      onClose: tokens.refetch,
    })
  return html`<div class="panel stack">
    <p class="quiet">
      Your directory sends members and groups to <code>${`${location.origin}/scim/v2`}</code> with
      one of these. <a href="/guides/people-come-and-go">People come and go</a> says how.
    </p>
    ${editableList(tokens, {
      what: 'tokens',
      empty: ['No tokens', 'Members are added by hand.'],
      key: ({ token_id }) => token_id,
      main: token =>
        html`<p class="row-title">
            ${token.description || 'A token'} <code>${token.masked_token}</code>
          </p>
          <p class="quiet">
            ${describeUse(token.created_at, token.last_used_at)}${token.expires_at !== null && `, ends ${formatRelativeTime(token.expires_at)}`}
          </p>`,
      actions: ({ token_id: tokenId, masked_token: about }) =>
        confirmButton('Remove', {
          about,
          title: 'Remove this token?',
          message: 'It is refused from the next request on. Members and groups stay.',
          act: () =>
            call('DELETE /v1/orgs/:orgId/scim-tokens/:tokenId', { params: { ...params, tokenId } }),
          onDone: tokens.refetch,
          done: 'The token is removed.',
        }),
    })}
    <div class="actions">
      ${dialogButton('New token', onClose => renderComponent(TokenForm, { org, onClose, onMade }))}
    </div>
    ${secretView}
  </div>`
}

type TokenFormProps = OrgProps & { onClose: () => void; onMade: (token: string) => void }

function TokenForm({ org, onClose, onMade }: TokenFormProps): View {
  const { fields, of } = useFields({ description: '', expires_at: '' })
  return dialogForm({
    title: 'New token',
    verb: 'Make it',
    onClose,
    act: async () => {
      const request = { params: { orgId: org }, body: filled(fields) }
      onMade((await call('POST /v1/orgs/:orgId/scim-tokens', request)).token)
    },
    fields: html`${textField({ label: 'Description', ...of('description'), maxlength: 200, placeholder: 'Okta' })}
    ${textField({ label: 'Ends', type: 'date', ...of('expires_at'), hint: 'Empty: it stays until it is removed.' })}`,
  })
}

import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { makeLink } from '#api/console/app/login.ts'
import { describeUse } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { seeAsHref, useRoles, useUsers, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { buttonLink, moreMenu } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  actionButton,
  dialogButton,
  dialogForm,
  useSecret,
  confirmButton,
} from '#api/console/app/parts/dialogs.ts'
import { checkboxGroup, textField, useFields, useFilters } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useListing } from '#api/console/app/queries.ts'
import type { ListedUser, OrgRole } from '#api/contract/generated/types.ts'

/** Lists the members of an organization with their roles and keys. */
export function Members({ org }: OrgProps): View {
  const users = useUsers(org)
  const roles = useRoles(org).items
  const [showSecret, secretView] = useSecret()
  const [turn, setTurn] = useState(0)
  const refetch = (): void => {
    users.refetch()
    setTurn(turn + 1)
  }
  const editor = (user?: ListedUser) => (onClose: () => void) =>
    renderComponent(MemberForm, { org, user, roles, onClose, onSaved: refetch })
  return page({
    title: 'Members',
    description:
      'A role says which tags its holders see; a key opens a private vault and what its member may see.',
    actions: dialogButton('Add a member', editor(), { kind: 'main' }),
    children: html`${editableList(users, {
      what: 'members',
      empty: ['No members yet', 'Add the first one, then create a key for them.'],
      key: ({ user_id }) => user_id,
      main: memberView,
      actions: user => {
        const { team_member_id: member } = user
        const mintKey = async (): Promise<string> => {
          const request = { params: { orgId: org }, body: { team_member_id: member } }
          return (await call('POST /v1/orgs/:orgId/keys', request)).memory_key
        }
        const mint = async (): Promise<void> =>
          showSecret({
            title: `A key for ${member}`,
            explanation:
              'It opens their private vault and what their roles let them see of the shared one.',
            secret: await mintKey(),
            onClose: refetch,
          })
        const invite = async (): Promise<void> =>
          showSecret({
            title: `An invitation for ${member}`,
            explanation: `Send them this link. It opens the console with a key of theirs, once, within ${inviteDays} days.`,
            secret: await makeLink(await mintKey(), inviteDays * 24),
            onClose: refetch,
          })
        return [
          buttonLink('See as', seeAsHref(org, { user: user.user_id }), { about: member }),
          actionButton('Invite', { act: invite, about: member }),
          dialogButton('Edit', editor(user), { about: member }),
          moreMenu(member, [
            actionButton('New key', { kind: 'plain', act: mint, about: member }),
            dialogButton(
              'Key to their private vault',
              onClose =>
                renderComponent(PrivateKeyForm, { org, user, onClose, showSecret, refetch }),
              { kind: 'plain', about: member },
            ),
            confirmButton('Remove', {
              kind: 'plain',
              about: member,
              title: `Remove ${member}?`,
              message:
                'Their private vault is deleted, with everything in it, and cannot be brought back. Their keys stop working. What they brought into the shared memory stays.',
              confirmationText: 'delete',
              act: () =>
                call('DELETE /v1/orgs/:orgId/users/:userId', {
                  params: { orgId: org, userId: user.user_id },
                }),
              done: `${member} is removed.`,
              onDone: refetch,
            }),
          ]),
        ]
      },
    })}
    ${section('Member keys', renderComponent(MemberKeys, { org, key: turn }))} ${secretView}`,
  })
}

const inviteDays = 7

type PrivateKeyProps = {
  org: string
  user: ListedUser
  onClose: () => void
  showSecret: ReturnType<typeof useSecret>[0]
  refetch: () => void
}

/** Asks why somebody's private memory is to be opened; the member is told that it can be. */
function PrivateKeyForm({ org, user, onClose, showSecret, refetch }: PrivateKeyProps): View {
  const { fields, of } = useFields({ reason: '' })
  const { user_id: userId, team_member_id: member } = user
  const mint = async (): Promise<void> => {
    const request = { params: { orgId: org, userId }, body: { reason: fields.reason.trim() } }
    const made = await call('POST /v1/orgs/:orgId/users/:userId/memory-key', request)
    showSecret({
      title: `A key to the private vault of ${member}`,
      explanation: `${made.rotated ? 'The one made before has stopped working. ' : ''}It reads, stores and deletes in their private vault, and opens nothing that the team shares.`,
      secret: made.memory_key,
      onClose: refetch,
    })
  }
  return dialogForm({
    title: `A key to the private vault of ${member}?`,
    verb: 'Make the key',
    danger: true,
    onClose,
    act: mint,
    fields: html`<p>
        Who has it reads all that is in the vault, and stores and deletes there. A key made here
        before stops working.
      </p>
      ${textField({
        label: 'Reason',
        ...of('reason'),
        required: true,
        maxlength: 200,
        hint: `It stands in the events with your name, and ${member} sees that there is such a key.`,
      })}`,
  })
}

const memberView = (user: ListedUser): View => {
  const { team_member_id: member, roles } = user
  const name = [user.first_name, user.last_name].filter(Boolean).join(' ')
  return html`<p class="row-title">${name || member}</p>
    ${name && html`<p class="quiet">${member}</p>`}
    <p class="chips">
      ${
        roles.length === 0
          ? chip('no role', 'plain', 'Sees shared memories without tags')
          : roles.map(role => chip(role.name, 'data'))
      }
      ${user.has_memory_key && chip('has a key')}
    </p>`
}

type FormProps = {
  org: string
  /** Undefined adds a member. */
  user: ListedUser | undefined
  roles: OrgRole[]
  onClose: () => void
  onSaved: () => void
}

type Draft = Record<'email' | 'first_name' | 'last_name', string> & { role_ids: readonly string[] }

function MemberForm({ org, user, roles, onClose, onSaved }: FormProps): View {
  const { fields, of } = useFields<Draft>({
    email: user?.email ?? '',
    first_name: user?.first_name ?? '',
    last_name: user?.last_name ?? '',
    role_ids: user?.role_ids ?? [],
  })
  const save = async (): Promise<void> => {
    const { email, ...names } = fields
    const body = { ...names, role_ids: [...names.role_ids] }
    if (user) {
      const params = { orgId: org, userId: user.user_id }
      const changed = email && email !== user.email ? { ...body, email } : body
      await call('PATCH /v1/orgs/:orgId/users/:userId', { params, body: changed })
    } else {
      await call('POST /v1/orgs/:orgId/users', { params: { orgId: org }, body: { ...body, email } })
    }
    onSaved()
  }
  return dialogForm({
    title: user ? `Edit ${user.team_member_id}` : 'Add a member',
    verb: user ? 'Save' : 'Add',
    onClose,
    act: save,
    done: user ? 'The member is changed.' : 'The member is added.',
    fields: html`${textField({
        label: 'Email',
        type: 'email',
        ...of('email'),
        required: !user || user.email !== null,
        maxlength: 320,
      })}
      <div class="filters">
        ${textField({ label: 'First name', ...of('first_name'), maxlength: 200 })}
        ${textField({ label: 'Last name', ...of('last_name'), maxlength: 200 })}
      </div>
      ${
        roles.length === 0
          ? html`<p class="quiet">
              There are no roles yet: members see shared memories without tags.
            </p>`
          : checkboxGroup({
              label: 'Roles',
              ...of('role_ids'),
              choices: roles.map(role => [role.role_id, role.name] as const),
            })
      }`,
  })
}

const noSearch = { q: '' }

/** Lists the keys of members, shows and revokes them. */
function MemberKeys({ org }: OrgProps): View {
  const { fields, of } = useFilters(noSearch)
  const [showSecret, secretView] = useSecret()
  const { q } = fields
  const keys = useListing(
    'GET /v1/orgs/:orgId/keys',
    { params: { orgId: org }, query: filled({ q }) },
    answer => answer.keys,
  )
  return html`<div class="stack">
    ${textField({ label: 'Find by member or key', type: 'search', ...of('q'), maxlength: 320 })}
    ${editableList(keys, {
      what: 'keys',
      empty: ['No keys', q ? 'None matches.' : 'Create one in the row of a member.'],
      key: ({ id }) => id,
      main: ({ masked_key, team_member_id, active, created_at, last_used_at }) =>
        html`<p class="row-title">
            <code>${masked_key}</code> ${active ? chip('active', 'good') : chip('revoked', 'bad')}
          </p>
          <p class="quiet">${team_member_id}. ${describeUse(created_at, last_used_at)}</p>`,
      actions: ({ id, masked_key, team_member_id: member, active }) => {
        const params = { orgId: org, keyId: id }
        const about = `key ${masked_key}`
        const show = async (): Promise<void> => {
          const { memory_key } = await call('GET /v1/orgs/:orgId/keys/:keyId', { params })
          showSecret({
            title: `The key of ${member}`,
            explanation: 'It authenticates as this member.',
            secret: memory_key,
          })
        }
        const revoke = async (): Promise<void> => {
          await call('DELETE /v1/orgs/:orgId/keys/:keyId', { params })
          keys.refetch()
        }
        return (
          active && [
            actionButton('Show', { act: show, about }),
            confirmButton('Revoke', {
              about,
              title: 'Revoke this key?',
              message: html`<p>
                <code>${masked_key}</code> of ${member} opens nothing from the next request on.
              </p>`,
              act: revoke,
              done: 'The key is revoked.',
            }),
          ]
        )
      },
    })}
    ${secretView}
  </div>`
}

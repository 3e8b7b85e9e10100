import { useState } from 'preact/hooks'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { MemberForm } from '#api/console/app/org/member-form.ts'
import { MemberKeys } from '#api/console/app/org/member-keys.ts'
import { useRoles, type OrgProps, type Role, type User } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'

/** Lists the members of an organization with their roles and keys. */
export function Members({ org }: OrgProps): View {
  const users = useQuery(
    async signal =>
      (await call('GET /v1/orgs/:orgId/users', { params: { orgId: org } }, signal)).users,
    [org],
  )
  const roles = useRoles(org)
  const [adding, setAdding] = useState(false)
  const [keys, setKeys] = useState(0)
  const refetch = (): void => {
    users.refetch()
    setKeys(keys + 1)
  }
  return page({
    title: 'Members',
    description:
      'A role says which tags its holders see; a key opens a private vault and what its member may see.',
    actions: html`<button type="button" class="button button-main" onClick=${() => setAdding(true)}>
      Add a member
    </button>`,
    children: html`<div class="stack-wide">
      ${queryView(users, 'members', all =>
        all.length === 0
          ? emptyNote('No members yet', 'Add the first one, then create a key for them.')
          : html`<ul class="plain rows">
              ${all.map(
                user =>
                  html`<li key=${user.user_id}>
                    ${renderComponent(MemberRow, { org, user, roles: roles.answer ?? [], onChanged: refetch })}
                  </li>`,
              )}
            </ul>`,
      )}
      ${section('Member keys', renderComponent(MemberKeys, { org, turn: keys }))}
      ${
        adding &&
        renderComponent(MemberForm, {
          org,
          roles: roles.answer ?? [],
          onClose: () => setAdding(false),
          onSaved: refetch,
        })
      }
    </div>`,
  })
}

type RowProps = { org: string; user: User; roles: Role[]; onChanged: () => void }

function MemberRow({ org, user, roles, onChanged }: RowProps): View {
  const [open, setOpen] = useState<'edit' | 'remove'>()
  const [key, setKey] = useState<string>()
  const actionState = useAction()
  const close = (): void => setOpen(undefined)
  const name = [user.first_name, user.last_name].filter(Boolean).join(' ')
  const member = user.team_member_id
  const mint = async (): Promise<void> => {
    const request = { params: { orgId: org }, body: { team_member_id: member } }
    setKey((await call('POST /v1/orgs/:orgId/keys', request)).memory_key)
  }
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">${name || member}</p>
      ${name && html`<p class="quiet">${member}</p>`}
      <p class="chips">
        ${
          user.roles.length === 0
            ? chip('no role', 'plain', 'Sees shared memories without tags')
            : user.roles.map(role => chip(role.name, 'tag'))
        }
        ${user.has_memory_key && chip('has a key', 'good')}
      </p>
      ${faultNote(actionState.fault)}
    </div>
    <div class="actions">
      <button
        type="button"
        class="button"
        disabled=${actionState.isRunning}
        aria-label=${`New key for ${member}`}
        onClick=${() => actionState.run(mint)}
      >
        New key
      </button>
      <button
        type="button"
        class="button"
        aria-label=${`Edit ${member}`}
        onClick=${() => setOpen('edit')}
      >
        Edit
      </button>
      <button
        type="button"
        class="button"
        aria-label=${`Remove ${member}`}
        onClick=${() => setOpen('remove')}
      >
        Remove
      </button>
    </div>
    ${open === 'edit' && renderComponent(MemberForm, { org, user, roles, onClose: close, onSaved: onChanged })}
    ${open === 'remove' && removeUserDialog(org, user, { onClose: close, onRemoved: onChanged })}
    ${
      key !== undefined &&
      memberKeyDialog(member, key, () => {
        setKey(undefined)
        onChanged()
      })
    }
  </article>`
}

const removeUserDialog = (
  org: string,
  user: User,
  { onClose, onRemoved }: { onClose: () => void; onRemoved: () => void },
): View =>
  confirmDialog({
    title: `Remove ${user.team_member_id}?`,
    message: html`<p>
      Their keys stop working and their private vault is deleted. What they brought into the shared
      memory stays.
    </p>`,
    verb: 'Remove',
    action: async () => {
      await call('DELETE /v1/orgs/:orgId/users/:userId', {
        params: { orgId: org, userId: user.user_id },
      })
      showToast(`${user.team_member_id} is removed.`)
      onRemoved()
    },
    onClose,
  })

const memberKeyDialog = (member: string, key: string, onClose: () => void): View =>
  secretDialog({
    title: `A key for ${member}`,
    explanation:
      'It opens their private vault and what their roles let them see of the shared one.',
    secret: key,
    onClose,
  })

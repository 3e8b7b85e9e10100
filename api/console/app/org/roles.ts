import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { checkboxField, checkboxGroup, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useRoles, useTags, type OrgProps, type Role } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'

/** Lists and edits roles: the tags that each may see. */
export function Roles({ org }: OrgProps): View {
  const roles = useRoles(org)
  const tags = useTags(org)
  const [editing, setEditing] = useState<Role | 'new'>()
  const [removing, setRemoving] = useState<Role>()
  return page({
    title: 'Roles',
    description: 'A member sees a shared memory when their roles allow all of its tags.',
    actions: html`<button
      type="button"
      class="button button-main"
      onClick=${() => setEditing('new')}
    >
      New role
    </button>`,
    children: html`<div>
      ${queryView(roles, 'roles', all =>
        all.length === 0
          ? emptyNote('No roles yet', 'Without a role members see shared memories without tags.')
          : html`<ul class="plain rows">
              ${all.map(role => html`<li key=${role.role_id}>${roleRow(role, setEditing, setRemoving)}</li>`)}
            </ul>`,
      )}
      ${
        editing &&
        renderComponent(RoleForm, {
          org,
          ...(editing !== 'new' && { role: editing }),
          labels: (tags.answer ?? []).map(({ label }) => label),
          onClose: () => setEditing(undefined),
          onSaved: roles.refetch,
        })
      }
      ${
        removing &&
        confirmDialog({
          title: `Remove ${removing.name}?`,
          message: html`<p>All members who have it lose it with their next request.</p>`,
          verb: 'Remove',
          action: async () => {
            const params = { orgId: org, roleId: removing.role_id }
            await call('DELETE /v1/orgs/:orgId/roles/:roleId', { params })
            showToast('The role is removed.')
            roles.refetch()
          },
          onClose: () => setRemoving(undefined),
        })
      }
    </div>`,
  })
}

const roleRow = (role: Role, edit: (role: Role) => void, remove: (role: Role) => void): View =>
  html`<article class="row">
    <div class="row-main">
      <p class="row-title">${role.name}</p>
      <p class="chips">
        ${
          role.allowed_tags.includes('*')
            ? chip('every tag', 'high')
            : role.allowed_tags.length === 0
              ? chip('no tags')
              : role.allowed_tags.map(tag => chip(tag, 'tag'))
        }
      </p>
    </div>
    <div class="actions">
      <button
        type="button"
        class="button"
        aria-label=${`Edit ${role.name}`}
        onClick=${() => edit(role)}
      >
        Edit
      </button>
      <button
        type="button"
        class="button"
        aria-label=${`Remove ${role.name}`}
        onClick=${() => remove(role)}
      >
        Remove
      </button>
    </div>
  </article>`

type FormProps = {
  org: string
  role?: Role
  labels: string[]
  onClose: () => void
  onSaved: () => void
}

function RoleForm({ org, role, labels, onClose, onSaved }: FormProps): View {
  const [name, setName] = useState(role?.name ?? '')
  const [allowed, setAllowed] = useState<readonly string[]>(role?.allowed_tags ?? [])
  const actionState = useAction()
  const every = allowed.includes('*')
  // A role may allow labels of no existing tag.
  const choices = [...new Set([...labels, ...allowed.filter(tag => tag !== '*')])]
  const act = async (): Promise<void> => {
    const body = { name, allowed_tags: every ? ['*'] : [...allowed] }
    if (role) {
      const params = { orgId: org, roleId: role.role_id }
      await call('PATCH /v1/orgs/:orgId/roles/:roleId', { params, body })
    } else await call('POST /v1/orgs/:orgId/roles', { params: { orgId: org }, body })
    showToast('The role is saved.')
    onSaved()
  }
  return dialogForm({
    title: role ? `Edit ${role.name}` : 'New role',
    verb: 'Save',
    actionState,
    onClose,
    act,
    fields: html`<div class="stack">
      ${textField({ label: 'Name', value: name, onValue: setName, required: true, maxlength: 200 })}
      ${checkboxField({
        label: 'Every tag there is and will be',
        value: every,
        onValue: on => setAllowed(on ? ['*'] : []),
      })}
      ${
        !every &&
        (choices.length === 0
          ? html`<p class="quiet">No tags are defined yet.</p>`
          : checkboxGroup({
              label: 'Tags its holders see',
              value: allowed,
              onValue: setAllowed,
              choices: choices.map(label => [label, label] as const),
            }))
      }
    </div>`,
  })
}

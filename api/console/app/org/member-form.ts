import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { checkboxGroup, textField } from '#api/console/app/parts/fields.ts'
import type { Role, User } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'

type Props = {
  org: string
  /** Undefined adds a member. */
  user?: User
  roles: Role[]
  onClose: () => void
  onSaved: () => void
}

/** A form for the names and roles of a member. */
export function MemberForm({ org, user, roles, onClose, onSaved }: Props): View {
  const [email, setEmail] = useState(user?.email ?? '')
  const [first, setFirst] = useState(user?.first_name ?? '')
  const [last, setLast] = useState(user?.last_name ?? '')
  const [roleIds, setRoleIds] = useState<readonly string[]>(user?.role_ids ?? [])
  const actionState = useAction()
  const act = async (): Promise<void> => {
    const body = { first_name: first, last_name: last, role_ids: [...roleIds] }
    if (user) {
      const params = { orgId: org, userId: user.user_id }
      const changed = email && email !== user.email ? { ...body, email } : body
      await call('PATCH /v1/orgs/:orgId/users/:userId', { params, body: changed })
    } else {
      await call('POST /v1/orgs/:orgId/users', { params: { orgId: org }, body: { ...body, email } })
    }
    showToast(user ? 'The member is changed.' : 'The member is added.')
    onSaved()
  }
  return dialogForm({
    title: user ? `Edit ${user.team_member_id}` : 'Add a member',
    verb: user ? 'Save' : 'Add',
    actionState,
    onClose,
    act,
    fields: html`<div class="stack">
      ${textField({
        label: 'Email',
        type: 'email',
        value: email,
        onValue: setEmail,
        required: !user || user.email !== null,
        maxlength: 320,
      })}
      <div class="filters">
        ${textField({ label: 'First name', value: first, onValue: setFirst, maxlength: 200 })}
        ${textField({ label: 'Last name', value: last, onValue: setLast, maxlength: 200 })}
      </div>
      ${
        roles.length === 0
          ? html`<p class="quiet">
              There are no roles yet: members see shared memories without tags.
            </p>`
          : checkboxGroup({
              label: 'Roles',
              value: roleIds,
              onValue: setRoleIds,
              choices: roles.map(role => [role.role_id, role.name] as const),
            })
      }
    </div>`,
  })
}

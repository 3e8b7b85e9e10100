import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { seeAsHref, useRoles, useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmButton, dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import {
  checkboxField,
  checkboxGroup,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import type { OrgRole } from '#api/contract/generated/types.ts'

/** Lists and edits roles: the tags that each may see. */
export function Roles({ org }: OrgProps): View {
  const roles = useRoles(org)
  const labels = useTags(org).items.map(({ label }) => label)
  const editor = (role?: OrgRole) => (onClose: () => void) =>
    renderComponent(RoleForm, { org, role, labels, onClose, onSaved: roles.refetch })
  return page({
    title: 'Roles',
    description: 'A member sees a shared memory when their roles allow all of its tags.',
    actions: dialogButton('New role', editor(), { kind: 'main' }),
    children: html`${editableList(roles, {
      what: 'roles',
      empty: ['No roles yet', 'Without a role members see shared memories without tags.'],
      key: ({ role_id }) => role_id,
      main: ({ name, allowed_tags }) =>
        html`<p class="row-title">${name}</p>
          <p class="chips">${allowedChips(allowed_tags)}</p>`,
      actions: role => [
        buttonLink('See as', seeAsHref(org, { roles: role.role_id }), { about: role.name }),
        dialogButton('Edit', editor(role), { about: role.name }),
        confirmButton('Remove', {
          about: role.name,
          title: `Remove ${role.name}?`,
          message: 'All members who have it lose it with their next request.',
          act: () =>
            call('DELETE /v1/orgs/:orgId/roles/:roleId', {
              params: { orgId: org, roleId: role.role_id },
            }),
          onDone: roles.refetch,
          done: 'The role is removed.',
        }),
      ],
    })}`,
  })
}

function allowedChips(tags: readonly string[]): View | View[] {
  if (tags.includes('*')) return chip('every tag', 'high')
  return tags.length === 0 ? chip('no tags') : tags.map(tag => chip(tag, 'data'))
}

type FormProps = {
  org: string
  /** Undefined creates a role. */
  role: OrgRole | undefined
  labels: string[]
  onClose: () => void
  onSaved: () => void
}

function RoleForm({ org, role, labels, onClose, onSaved }: FormProps): View {
  const { fields, set, of } = useFields<{ name: string; allowed: readonly string[] }>({
    name: role?.name ?? '',
    allowed: role?.allowed_tags ?? [],
  })
  const { name, allowed } = fields
  const every = allowed.includes('*')
  // A role may allow labels of no existing tag.
  const choices = [...new Set([...labels, ...allowed.filter(tag => tag !== '*')])]
  return dialogForm({
    title: role ? `Edit ${role.name}` : 'New role',
    verb: 'Save',
    onClose,
    act: async () => {
      const body = { name, allowed_tags: every ? ['*'] : [...allowed] }
      if (role) {
        const params = { orgId: org, roleId: role.role_id }
        await call('PATCH /v1/orgs/:orgId/roles/:roleId', { params, body })
      } else await call('POST /v1/orgs/:orgId/roles', { params: { orgId: org }, body })
      onSaved()
    },
    done: 'The role is saved.',
    fields: html`${textField({ label: 'Name', ...of('name'), required: true, maxlength: 200 })}
    ${checkboxField({
      label: 'Every tag there is and will be',
      value: every,
      onValue: on => set({ allowed: on ? ['*'] : [] }),
    })}
    ${
      !every &&
      (choices.length === 0
        ? html`<p class="quiet">No tags are defined yet.</p>`
        : checkboxGroup({
            label: 'Tags its holders see',
            ...of('allowed'),
            choices: choices.map(label => [label, label] as const),
          }))
    }`,
  })
}

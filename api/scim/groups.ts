import { ScimRefusal } from '#api/edge/errors.ts'
import { parseFilter } from '#api/scim/filter.ts'
import { assignmentsOf, readText, requireIgnored, type Assignment } from '#api/scim/patch.ts'
import { scimSchemas } from '#api/scim/schemas.ts'
import type { DirectoryGroup } from '#shared/org/admin/directory.ts'
import type { GroupRow } from '#shared/org/base/groups.postgres.ts'

/** A group as SCIM shows it. @param base address of the service's SCIM */
export const presentScimGroup = ({ id, externalId, name, members }: GroupRow, base: string) => ({
  schemas: [scimSchemas.Group],
  id,
  externalId: externalId ?? undefined,
  displayName: name,
  members: members.map(({ id: value }) => ({
    value,
    $ref: `${base}/Users/${value}`,
    type: 'User',
  })),
})

/** A group as the directory left it, to be changed. */
export const toDirectoryGroup = ({ members, ...group }: GroupRow): DirectoryGroup => ({
  ...group,
  members: members.map(({ id }) => id),
})

/** A whole group: what is left out has no value, but for the directory's id. @throws ScimRefusal. */
export const readScimGroup = (body: unknown, before?: GroupRow): DirectoryGroup => {
  const { externalId = null } = before ?? {}
  return assignGroup({ name: '', externalId, members: [] }, assignmentsOf(body))
}

/** A group after these changes. @throws ScimRefusal. */
export function assignGroup(group: DirectoryGroup, changes: readonly Assignment[]): DirectoryGroup {
  const members = new Set(group.members)
  const changed = { ...group }
  for (const change of changes) {
    const { attribute } = change
    if (attribute === 'displayname') changed.name = readText(change, 256) ?? ''
    else if (attribute === 'externalid') changed.externalId = readText(change)
    else if (/^members(?:\.|$)/.test(attribute)) assignMembers(members, change)
    else requireIgnored(change)
  }
  if (changed.name.trim() !== '') return { ...changed, members: [...members] }
  throw new ScimRefusal('invalidValue', 'displayName is missing', 'Send a name of the group')
}

function assignMembers(members: Set<string>, { op, attribute, filter, value }: Assignment): void {
  if (attribute !== 'members' && attribute !== 'members.value')
    throw new ScimRefusal('mutability', 'Of a member value alone is written')
  if (filter !== undefined && op !== 'remove')
    throw new ScimRefusal('invalidPath', 'A member is added without a filter')
  // Okta names those that it removes in a filter, Entra in the value.
  const named =
    filter === undefined ? [value ?? []].flat() : parseFilter(filter).map(([, id]) => id)
  const ids = named.map(one => {
    const id = typeof one === 'string' ? one : (Object(one) as { value?: unknown }).value
    if (typeof id === 'string' && id !== '') return id.toLowerCase()
    throw new ScimRefusal('invalidValue', 'A member has no value')
  })
  if (op === 'replace' || (op === 'remove' && ids.length === 0)) members.clear()
  for (const id of ids) {
    if (op === 'remove') members.delete(id)
    else members.add(id)
  }
}

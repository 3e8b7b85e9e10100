import { ScimRefusal } from '#api/edge/errors.ts'
import { assignmentsOf, readText, requireIgnored, type Assignment } from '#api/scim/patch.ts'
import { scimSchemas } from '#api/scim/schemas.ts'
import type { DirectoryUser } from '#shared/org/admin/directory.ts'
import { isEmail } from '#shared/org/base/normalize.ts'
import type { DirectoryRow } from '#shared/org/base/users.postgres.ts'

/** A user as SCIM shows it. @param base address of the service's SCIM */
export function presentScimUser(user: DirectoryRow, base: string) {
  const { id, externalId, teamMemberId, firstName, lastName, email, active, groups } = user
  const displayName = [firstName, lastName].filter(name => name !== null).join(' ')
  return {
    schemas: [scimSchemas.User],
    id,
    externalId: externalId ?? undefined,
    userName: teamMemberId,
    ...(displayName !== '' && {
      name: { familyName: lastName ?? undefined, givenName: firstName ?? undefined },
      displayName,
    }),
    ...(email !== null && { emails: [{ value: email, type: 'work', primary: true }] }),
    active,
    ...(groups.length > 0 && {
      groups: groups.map(({ id: value, name: display }) => {
        return { value, display, $ref: `${base}/Groups/${value}`, type: 'direct' }
      }),
    }),
  }
}

/** A user as the directory left it, to be changed. */
export const toDirectoryUser = ({ teamMemberId, email, ...user }: DirectoryRow): DirectoryUser => ({
  ...user,
  userName: teamMemberId,
  // One that is the name follows it.
  email: email === teamMemberId ? null : email,
})

/**
 * A whole user: what is left out has no value, but for `active` and the directory's id, which Okta leaves out of a PUT.
 *
 * @throws ScimRefusal.
 */
export function readScimUser(body: unknown, before?: DirectoryRow): DirectoryUser {
  const { active = true, externalId = null } = before ?? {}
  const none = { userName: '', email: null, firstName: null, lastName: null }
  return assignUser({ ...none, active, externalId }, assignmentsOf(body))
}

/** A user after these changes. @throws ScimRefusal. */
export function assignUser(user: DirectoryUser, changes: readonly Assignment[]): DirectoryUser {
  const changed = { ...user }
  for (const change of changes) assign(changed, change)
  if (changed.userName.trim() !== '') return changed
  throw new ScimRefusal('invalidValue', 'userName is missing', 'Send a name of the user')
}

function assign(user: DirectoryUser, change: Assignment): void {
  const { attribute, op, value } = change
  if (attribute === 'username') user.userName = readText(change) ?? ''
  else if (attribute === 'externalid') user.externalId = readText(change)
  else if (attribute === 'name.givenname') user.firstName = readText(change, 200)
  else if (attribute === 'name.familyname') user.lastName = readText(change, 200)
  else if (attribute === 'active') {
    // Entra sends "False" as text.
    const said = op === 'remove' ? 'false' : String(value).toLowerCase()
    if (said !== 'true' && said !== 'false')
      throw new ScimRefusal('invalidValue', 'active has to be true or false')
    user.active = said === 'true'
  } else if (attribute === 'name') {
    if (op !== 'add') user.firstName = user.lastName = null
    if (op === 'remove' || value === null) return
    for (const part of assignmentsOf(value, op, 'name.')) assign(user, part)
  } else if (/^emails(?:\.|$)/.test(attribute)) assignEmail(user, change)
  else requireIgnored(change)
}

/** One email is kept: the primary one, else that of work, else the first. */
function assignEmail(user: DirectoryUser, change: Assignment): void {
  const { attribute, filter, op, value } = change
  const isOfKept = filter === undefined || /^\s*(?:type\s+eq\s+"work"|primary\s+eq)/i.test(filter)
  if (!isOfKept || (attribute !== 'emails' && attribute !== 'emails.value')) return
  const given = [op === 'remove' ? [] : (value ?? [])].flat().map(one => {
    const email = Object(one) as { value?: unknown; primary?: unknown; type?: unknown }
    const isPrimary = String(email.primary).toLowerCase() === 'true'
    return { value: typeof one === 'string' ? one : email.value, isPrimary, type: email.type }
  })
  const kept =
    given.find(one => one.isPrimary) ?? given.find(one => one.type === 'work') ?? given[0]
  const email = readText({ ...change, value: kept?.value })
  if (email !== null && !isEmail(email))
    throw new ScimRefusal('invalidValue', 'A value of emails is no email')
  // One that is added beside the kept one does not take its place, unless it is the primary one.
  const staysBeside = op === 'add' && filter === undefined && user.email !== null
  if (!staysBeside || kept?.isPrimary) user.email = email
}

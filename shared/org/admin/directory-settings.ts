import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { applyGrants } from '#shared/org/admin/directory.ts'
import {
  readDirectorySettings,
  replaceGrants,
  updateSignIn,
  type DirectorySettings,
} from '#shared/org/base/groups.postgres.ts'
import { normalizeName } from '#shared/org/base/normalize.ts'
import { changePart, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * Writes the given fields; members have what their groups give with their next request.
 *
 * @throws Refusal `missing` for an unknown organization or role; `conflict` for a demand to sign in without a login
 *   provider; `invalid` for a group that is named twice or gets nothing.
 */
export function changeDirectorySettings(
  backend: { postgres: Postgres; config: Config },
  scope: OrgAdmin,
  change: { [Field in keyof DirectorySettings]?: DirectorySettings[Field] | undefined },
): Promise<DirectorySettings> {
  if (change.required && backend.config.oidc === null) throw refusal('conflict', 'noLoginProvider')
  const { org } = scope
  const grants = change.grants?.map(one => ({ ...one, group: normalizeName(one.group, 'group') }))
  const idle = grants?.find(({ roleIds, reviews }) => roleIds.length === 0 && !reviews)
  if (idle) throw refusal('invalid', 'groupGetsNothing', { group: idle.group })
  if (grants && new Set(grants.map(({ group }) => group.toLowerCase())).size < grants.length)
    throw refusal('invalid', 'groupNamedTwice')
  return changePart(backend, scope, {
    action: 'directory.changed',
    read: query => readDirectorySettings(query, org),
    async write(tx) {
      await updateSignIn(tx, org, change)
      if (!grants) return
      if (!(await replaceGrants(tx, org, grants)))
        throw new Refusal('missing', 'No such role', 'GET /v1/orgs/:orgId/roles lists them')
      await applyGrants(tx, scope)
    },
    toRecorded: ({ required, hours, grants }) => ({
      sign_in_required: required,
      sign_in_hours: hours,
      grants: grants.map(({ group, roleIds, reviews }) =>
        [`${group}:`, ...roleIds, ...(reviews ? ['reviews'] : [])].join(' '),
      ),
    }),
  })
}

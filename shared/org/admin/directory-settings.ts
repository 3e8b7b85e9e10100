import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
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
  if (change.required && backend.config.oidc === null)
    throw new Refusal(
      'conflict',
      'This service has no login provider to sign in at',
      'The operator sets OIDC_ISSUER, as the page on signing in says',
    )
  const { org } = scope
  const grants = change.grants?.map(one => ({ ...one, group: normalizeName(one.group, 'group') }))
  const idle = grants?.find(({ roleIds, reviews }) => roleIds.length === 0 && !reviews)
  if (idle)
    throw new Refusal(
      'invalid',
      `The group ${idle.group} gets nothing`,
      'Give it role_ids, or reviews',
    )
  if (grants && new Set(grants.map(({ group }) => group.toLowerCase())).size < grants.length)
    throw new Refusal(
      'invalid',
      'A group is named twice in grants',
      'Name it once, with all it gets',
    )
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

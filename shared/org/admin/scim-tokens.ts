import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import type { Config } from '#shared/core/config.ts'
import { changePolicy, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import {
  insertScimToken,
  scimTokenRows,
  useScimToken,
  type ScimTokenRow,
} from '#shared/org/base/scim-tokens.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

const tokens = policyResource({
  name: 'scim_token',
  rows: scimTokenRows,
  conflictMessage: 'The organization has this token already',
  toRecorded: ({ description, masked }: ScimTokenRow) => ({ description, key: masked }),
})

/** A removed token is refused from the next request on. */
export const { remove: removeScimToken } = tokens

/**
 * Creates a token of a directory. Repeated under the same operation, its id, it replaces the secret.
 *
 * @returns the token and its raw form, which is shown once
 * @throws Refusal as `policyResource`.
 */
export const createScimToken = (
  { postgres, config }: { postgres: Postgres; config: Config },
  scope: OrgAdmin,
  id: string,
  given: Pick<ScimTokenRow, 'description' | 'expiresAt'>,
): Promise<{ token: ScimTokenRow; key: string }> =>
  changePolicy({ postgres }, scope, async tx => {
    const key = mintKey('scim')
    const secret = { hash: hashKey(config.keyPepper, key), masked: maskKey(key) }
    const row = { id, org: scope.org, createdBy: scope.admin.email, ...given, ...secret }
    const { isNew, ...token } = await insertScimToken(tx, row)
    if (isNew) await tokens.record(tx, scope, 'scim_token.created', { after: token })
    return { token, key }
  })

/** Finds what a token opens, as the admin whom its events name masked; undefined for none that is valid. */
export async function findScimScope(
  { postgres, config }: { postgres: Postgres; config: Config },
  token: string,
): Promise<OrgAdmin | undefined> {
  const keyHash = hashKey(config.keyPepper, token)
  const found = await useScimToken(postgres.query, keyHash)
  return (
    found && { admin: { email: found.masked, account: found.account, keyHash }, org: found.org }
  )
}

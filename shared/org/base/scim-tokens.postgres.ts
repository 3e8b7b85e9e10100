import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type ScimTokenRow = {
  id: string
  description: string
  masked: string
  createdBy: string
  createdAt: Date
  expiresAt: Date | null
  /** To the minute. */
  lastUsedAt: Date | null
}

const columns = `id, description, masked, created_by as "createdBy", created_at as "createdAt",
  expires_at as "expiresAt", last_used_at as "lastUsedAt"`

export const scimTokenRows = policyRows<ScimTokenRow>('org_scim_tokens', columns)

/** Finds the organization of a token that has not expired, and notes the use once a minute. */
export async function useScimToken(
  query: Query,
  hash: Buffer,
): Promise<{ account: string; org: string; masked: string } | undefined> {
  const { rows } = await query<{ account: string; org: string; masked: string }>(
    `with noted as (
       update org_scim_tokens set last_used_at = now()
       where hash = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')
     )
     select o.account, o.id as org, t.masked from org_scim_tokens t join orgs o on o.id = t.org
     where t.hash = $1 and (t.expires_at is null or t.expires_at > now())`,
    [hash],
    'scim-tokens.use',
  )
  return rows[0]
}

/** Inserts a token; a second insert under the same id replaces the secret. @returns it, and whether it is new. */
export async function insertScimToken(
  { query }: Transaction,
  token: Omit<ScimTokenRow, 'createdAt' | 'lastUsedAt'> & { org: string; hash: Buffer },
): Promise<ScimTokenRow & { isNew: boolean }> {
  const { id, org, description, hash, masked, createdBy, expiresAt } = token
  const { rows } = await query<ScimTokenRow & { isNew: boolean }>(
    `insert into org_scim_tokens (id, org, description, hash, masked, created_by, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (id) do update set hash = excluded.hash, masked = excluded.masked
     returning ${columns}, xmax = 0 as "isNew"`,
    [id, org, description, hash, masked, createdBy, expiresAt],
  )
  return rows[0]!
}

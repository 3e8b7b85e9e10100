import { accountVaultSql } from '#shared/operations/account-vaults.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type AccountRow = {
  email: string
  paymentMethod: string | null
  balance: number | null
  createdAt: Date
}

/** An account; undefined when there is none. */
export async function findAccount(query: Query, id: string): Promise<AccountRow | undefined> {
  const { rows } = await query<AccountRow>(
    `select email, payment_method as "paymentMethod", balance,
            created_at as "createdAt"
     from accounts where id = $1`,
    [id],
  )
  return rows[0]
}

export type AccountVault = {
  vault: string
  epoch: number
  createdAt: Date
  /** The product's id of the user whose vault it is; null for any other. */
  externalId: string | null
  /** Every key of the vault, revoked and expired ones too. */
  keys: {
    masked: string
    name: string
    createdAt: string
    expiresAt: string | null
    revokedAt: string | null
  }[]
}

/** Vaults of an account itself, oldest first: not those of its organizations and their members. */
export async function listAccountVaults(query: Query, account: string): Promise<AccountVault[]> {
  const { rows } = await query<AccountVault>(
    `select v.id as vault, v.epoch, v.created_at as "createdAt", v.external_id as "externalId",
            coalesce(json_agg(json_build_object('masked', k.masked, 'name', k.name,
              'createdAt', k.created_at, 'expiresAt', k.expires_at, 'revokedAt', k.revoked_at)
              order by k.created_at) filter (where k.hash is not null), '[]') as keys
     from vaults v left join memory_keys k on k.vault = v.id
     where v.account = $1 and ${accountVaultSql('v.id')}
     group by v.id order by v.created_at, v.id`,
    [account],
  )
  return rows
}

import type { Query } from '#shared/storage/postgres/connect.ts'

/** A shared vault to move to another vault space, and the account that owns it. */
export type SharedVaultOutsideSpace = {
  org: string
  account: string
  /** The newest key of the organization itself, also a revoked one; empty where there was none. */
  keyHash: Buffer
  vault: string
  epoch: number
  /** The space that holds all of it; null: not determined yet. */
  space: string | null
}

/** The vault space that holds all shared memories of an organization; null: not determined yet. */
export async function findSharedSpace(query: Query, org: string): Promise<string | null> {
  const { rows } = await query<{ space: string | null }>(
    'select space from orgs where id = $1',
    [org],
    'orgs.space',
  )
  return rows[0]?.space ?? null
}

/** Records the space that holds all of a shared vault; other vaults are ignored. */
export async function recordSharedSpace(query: Query, vault: string, space: string): Promise<void> {
  await query('update orgs set space = $2 where vault = $1', [vault, space], 'orgs.note-space')
}

export async function hasOrgs(query: Query): Promise<boolean> {
  const { rows } = await query<{ any: boolean }>('select exists (select from orgs) as any')
  return rows[0]!.any
}

/**
 * Shared vaults that are not known to be in a space, without those whose re-embedding began in the last hour: it
 * may still run, and processes of two configurations do not move a vault back and forth.
 */
export async function sharedVaultsOutsideSpace(
  query: Query,
  space: string,
  max: number,
): Promise<SharedVaultOutsideSpace[]> {
  const { rows } = await query<SharedVaultOutsideSpace>(
    `select o.id as org, o.account, o.vault, v.epoch, o.space,
            coalesce((select hash from memory_keys k where k.org = o.id and k.org_user is null
                      order by k.created_at desc limit 1), ''::bytea) as "keyHash"
     from orgs o join vaults v on v.id = o.vault
     where o.space is distinct from $1 and not exists (
       select from operations p
       where p.account = o.account and p.vault = o.vault and p.kind = 'reembed'
         and (p.state in ('accepted', 'running') or p.created_at > now() - interval '1 hour'))
     order by o.created_at, o.id limit $2`,
    [space, max],
    'orgs.in-other-space',
  )
  return rows
}

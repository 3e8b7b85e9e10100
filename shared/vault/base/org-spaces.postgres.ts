import type { Query } from '#shared/storage/postgres/connect.ts'

/** A shared vault that is not known to be in some vault space, and who pays for it. */
export type SharedVaultOutsideSpace = {
  org: string
  account: string
  /** Of the organization's own key. */
  keyHash: Buffer
  vault: string
  epoch: number
  /** The space it is known to be in; null as long as nobody has looked. */
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

/** Notes the space that all of a shared vault is in by now; of any other vault nothing is noted. */
export async function recordSharedSpace(query: Query, vault: string, space: string): Promise<void> {
  await query('update orgs set space = $2 where vault = $1', [vault, space], 'orgs.note-space')
}

export async function hasOrgs(query: Query): Promise<boolean> {
  const { rows } = await query<{ any: boolean }>('select exists (select from orgs) as any')
  return rows[0]!.any
}

/**
 * Shared vaults that are not known to be in a space, except those that a re-embedding was begun of in
 * the last hour: it may be under way, and one that failed is not tried again at once. Nor do processes
 * of two configurations, as long as there are both, take a vault back and forth.
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
    'orgs.elsewhere',
  )
  return rows
}

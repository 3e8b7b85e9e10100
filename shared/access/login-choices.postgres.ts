import { activeSql } from '#shared/access/key-row.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What a person of an email may open in the console. */
export type LoginChoice = {
  /**
   * `admin`: the teams of the account; `owner`: its vault; `member`: that of a member of an organization; `reviewer`: the
   * review queue of one.
   */
  kind: 'admin' | 'owner' | 'member' | 'reviewer'
  account: string | null
  /** For a member: the id of a lasting key; null where there is none, or the organization demands a sign-in: one is made. */
  key: string | null
  /** For a member or a reviewer: their id. */
  person: string | null
  /** For a member or a reviewer: the organization. */
  org: string | null
  /** The name of the organization, or of the newest key of the vault; null for an admin. */
  name: string | null
  /** For an owner: the vault. */
  vault: string | null
  /** For a member: the email of the account whose organization it is. */
  ownedBy: string | null
  /** For a member: the person has not opened it yet. */
  isNew: boolean
  /** Hours that what is made for the choice lasts; null: a member's key without an end. */
  hours: number | null
}

/** The name of a key that a login has made. */
export const loginKeyName = 'Console login'

/** The oldest lasting key of the vault that a person may open; undefined where there is none any more. */
export async function findChoiceKey(
  query: Query,
  { key, vault }: Pick<LoginChoice, 'key' | 'vault'>,
): Promise<{ keyHash: Buffer; maskedKey: string } | undefined> {
  const { rows } = await query<{ keyHash: Buffer; maskedKey: string }>(
    `select k.hash as "keyHash", k.masked as "maskedKey" from memory_keys k
     where (k.id = $1 and (k.signed_in or k.expires_at is null)
         or k.vault = $2 and k.kind = 'vault' and k.rights = 'all' and k.name <> $3 and k.expires_at is null)
       and ${activeSql}
     order by k.created_at, k.hash limit 1`,
    [key, vault, loginKeyName],
    'login.choice-key',
  )
  return rows[0]
}

/**
 * What the account of an email and its membership of organizations open now.
 *
 * @param email in lower case
 */
export async function findLoginChoices(query: Query, email: string): Promise<LoginChoice[]> {
  const { rows } = await query<LoginChoice>(
    `select 'admin' as kind, a.id as account, null::uuid as key, null::uuid as person, null::uuid as org,
            null as name, null::uuid as vault, null as "ownedBy", false as "isNew", 12 as hours
     from accounts a where a.email = $1
     union all
     select 'owner', v.account, null, null, null,
           (select k.name from memory_keys k where k.vault = v.id and ${activeSql}
              and k.name <> '${loginKeyName}'
            order by k.created_at desc, k.id limit 1), v.id, null, false, 12
     from accounts a join vaults v on v.account = a.id and v.owner
     where a.email = $1 and exists (
       select from memory_keys k
       where k.vault = v.id and k.kind = 'vault' and k.rights = 'all' and ${activeSql})
     union all
     select 'member', o.account, k.id, u.id, o.id, o.name, null,
           (select a.email from accounts a where a.id = o.account), u.accepted_at is null,
           case when o.sign_in_required then o.sign_in_hours end
     from org_users u join orgs o on o.id = u.org
     left join memory_keys k on k.org_user = u.id and k.kind = 'member' and not k.signed_in and ${activeSql}
     where u.email = $1 and u.suspended_at is null
       and (k.id is not null or u.directory or o.sign_in_required)
     union all
     select 'reviewer', o.account, null, r.id, o.id, o.name, null,
           (select a.email from accounts a where a.id = o.account), false, o.sign_in_hours
     from org_reviewers r join orgs o on o.id = r.org where r.email = $1`,
    [email],
    'login.choices',
  )
  return rows
}

/** Notes that the person of a member has opened their vault. */
export async function acceptMembership(query: Query, user: string): Promise<void> {
  await query(
    'update org_users set accepted_at = now() where id = $1 and accepted_at is null',
    [user],
    'login.accept-membership',
  )
}

/** Whose key this is: the email of its account, and its name; undefined for none that is active. */
export async function findKeyOwner(
  query: Query,
  hash: Buffer,
): Promise<{ account: string; name: string } | undefined> {
  const { rows } = await query<{ account: string; name: string }>(
    `select a.email as account, k.name from memory_keys k join accounts a on a.id = k.account
     where k.hash = $1 and ${activeSql}`,
    [hash],
    'login.key-owner',
  )
  return rows[0]
}

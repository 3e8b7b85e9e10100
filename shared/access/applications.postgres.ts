import { activeSql } from '#shared/access/key-row.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** Rights that a person gives an application; `delete` is forgetting for good. */
export const applicationScopes = ['read', 'write', 'delete'] as const

export type ApplicationScope = (typeof applicationScopes)[number]

/** A client of OAuth that may use one vault at `/mcp`. */
export type Application = {
  id: string
  clientId: string
  /** As the client calls itself. */
  clientName: string
  redirectHost: string
  scopes: ApplicationScope[]
  /** The product's id of the user whose vault it is; null for the vault of a key itself. */
  externalId: string | null
  createdAt: Date
  /** To the minute. */
  lastUsedAt: Date | null
}

const columns = `a.id, a.client_id as "clientId", a.client_name as "clientName",
  a.redirect_host as "redirectHost", a.scopes, a.external_id as "externalId",
  a.created_at as "createdAt", a.last_used_at as "lastUsedAt"`

export async function insertApplication(
  { query }: Transaction,
  application: Omit<Application, 'createdAt' | 'lastUsedAt'> & {
    account: string
    vault: string
    keyHash: Buffer
    /** Id of the record of its client. */
    client: Buffer
  },
): Promise<void> {
  const { id, account, vault, keyHash, externalId, client } = application
  const { clientId, clientName, redirectHost, scopes } = application
  await query(
    `insert into applications (id, account, vault, key_hash, external_id, client, client_id,
                               client_name, redirect_host, scopes)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [id, account, vault, keyHash, externalId, client, clientId, clientName, redirectHost, scopes],
    'applications.insert',
  )
}

/** Whether an application is there and its key opens its vault now; a user's must not be revoked. */
export async function isApplicationActive(query: Query, id: string): Promise<boolean> {
  const { rowCount } = await query(
    `select from applications a join memory_keys k on k.hash = a.key_hash
     where a.id = $1 and ${activeSql}
       and (a.external_id is null or exists (
         select from memory_keys k where k.vault = a.vault and ${activeSql}))`,
    [id],
    'applications.active',
  )
  return rowCount > 0
}

/** The application of an access token, with the key by which it acts. */
export type TokenApplication = {
  id: string
  /** The token's record, sealed. */
  payload: string
  vault: string
  keyHash: Buffer
  maskedKey: string
  externalId: string | null
  /** Its last use was noted within the last minute. */
  isNoted: boolean
}

/** The application of the access token with this record id; undefined for one that is unknown or has ended. */
export async function findTokenApplication(
  query: Query,
  token: Buffer,
): Promise<TokenApplication | undefined> {
  const { rows } = await query<TokenApplication>(
    `select a.id, r.payload, a.vault, a.key_hash as "keyHash", k.masked as "maskedKey",
            a.external_id as "externalId",
            coalesce(a.last_used_at > now() - interval '1 minute', false) as "isNoted"
     from oauth_records r join applications a on a.id = r.application
     join memory_keys k on k.hash = a.key_hash
     where r.model = 'AccessToken' and r.id = $1 and r.expires_at > now() and ${activeSql}`,
    [token],
    'applications.of-token',
  )
  return rows[0]
}

export async function noteApplicationUse(query: Query, id: string): Promise<void> {
  await query(
    'update applications set last_used_at = now() where id = $1',
    [id],
    'applications.note-use',
  )
}

/** Whose applications: those of one vault, or of all vaults of an account itself, without its members'. */
export type ApplicationOwner = { vault: string } | { account: string }

const ownerSql = `(a.vault = $1 or (a.account = $2 and k.kind = 'vault'))`
const ownerValues = (owner: ApplicationOwner) =>
  'vault' in owner ? [owner.vault, null] : [null, owner.account]

/**
 * The applications whose key opens its vault, the newest first.
 *
 * @param page.after the id of the last one of the page before
 * @param page.limit null for all
 */
export async function listApplications(
  query: Query,
  owner: ApplicationOwner,
  { after, limit }: { after: string | undefined; limit: number | null },
): Promise<Application[]> {
  const { rows } = await query<Application>(
    `select ${columns} from applications a join memory_keys k on k.hash = a.key_hash
     where ${ownerSql} and ${activeSql} and ($3::uuid is null or a.id < $3)
     order by a.id desc limit $4`,
    [...ownerValues(owner), after ?? null, limit],
    'applications.list',
  )
  return rows
}

/** Deletes an application with its tokens. @returns it; undefined when the owner has none of that id. */
export async function deleteApplication(
  { query }: Transaction,
  owner: ApplicationOwner,
  id: string,
): Promise<Application | undefined> {
  const { rows } = await query<Application>(
    `delete from applications a using memory_keys k
     where k.hash = a.key_hash and ${ownerSql} and a.id = $3 returning ${columns}`,
    [...ownerValues(owner), id],
    'applications.delete',
  )
  return rows[0]
}

import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { organizationRouteSql } from '#shared/operations/idempotency.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { routesShowingMemories } from '#shared/vault/base/erasures.postgres.ts'

/** An organization with its owner and the state of its shared vault. */
export type OrgRow = {
  id: string
  /** The owner's account, which pays for what members do. */
  account: string
  ownerEmail: string
  vault: string
  epoch: number
  revision: number
  /** The vault space of all its memories; null until it is determined. */
  space: string | null
  name: string
  processorProvider: string
  extractModel: string
  classifyModel: string
  createdAt: Date
  updatedAt: Date
}

export type OrgSettings = Pick<
  OrgRow,
  'name' | 'processorProvider' | 'extractModel' | 'classifyModel'
>

export type OrgChange = {
  [Setting in keyof OrgSettings]?: OrgSettings[Setting] | undefined
}

const columns = `o.id, o.account, a.email as "ownerEmail", o.vault, v.epoch, v.revision, o.space,
  o.name, o.processor_provider as "processorProvider", o.extract_model as "extractModel",
  o.classify_model as "classifyModel", o.created_at as "createdAt", o.updated_at as "updatedAt"`

const fromClause = 'orgs o join accounts a on a.id = o.account join vaults v on v.id = o.vault'

/**
 * Finds an organization of an account.
 *
 * @param reviews the only organization of a reviewer; null for admins
 */
export async function findOrg(
  query: Query,
  account: string,
  id: string,
  reviews: string | null = null,
): Promise<OrgRow | undefined> {
  if (!isUuid(id)) return undefined
  const { rows } = await query<OrgRow>(
    `select ${columns} from ${fromClause} where o.id = $1 and o.account = $2
       and ($3::uuid is null or o.id = $3)`,
    [id, account, reviews],
    'orgs.find',
  )
  return rows[0]
}

export async function findOrgAccount(query: Query, id: string): Promise<string | undefined> {
  const { rows } = await query<{ account: string }>('select account from orgs where id = $1', [id])
  return rows[0]?.account
}

/** Lists the organizations of an account, oldest first; a reviewer's only one. */
export async function listOrgs(
  query: Query,
  account: string,
  reviews: string | null = null,
): Promise<OrgRow[]> {
  const { rows } = await query<OrgRow>(
    `select ${columns} from ${fromClause} where o.account = $1 and ($2::uuid is null or o.id = $2)
     order by o.created_at, o.id`,
    [account, reviews],
    'orgs.list',
  )
  return rows
}

/**
 * Locks an organization, so that changes to its policy follow one another, and raises its policy version.
 *
 * @returns false when the account has no such organization.
 */
export async function lockOrg(tx: Transaction, account: string, id: string): Promise<boolean> {
  if (!isUuid(id)) return false
  const { rowCount } = await tx.query(
    'update orgs set policy_version = policy_version + 1 where id = $1 and account = $2',
    [id, account],
    'orgs.hold',
  )
  return rowCount === 1
}

/** @returns false when the account has this organization, or one of its name. */
export async function insertOrg(
  tx: Transaction,
  org: OrgSettings & { id: string; account: string; vault: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into orgs (id, account, vault, name, processor_provider, extract_model, classify_model)
     values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
    [
      org.id,
      org.account,
      org.vault,
      org.name,
      org.processorProvider,
      org.extractModel,
      org.classifyModel,
    ],
  )
  return rowCount === 1
}

/** Writes the settings that are given. @throws a unique violation when the name is taken. */
export async function updateOrg(
  tx: Transaction,
  id: string,
  { name, processorProvider, extractModel, classifyModel }: OrgChange,
): Promise<void> {
  await tx.query(
    `update orgs set name = coalesce($2, name),
       processor_provider = coalesce($3, processor_provider),
       extract_model = coalesce($4, extract_model), classify_model = coalesce($5, classify_model),
       updated_at = now()
     where id = $1`,
    [id, name ?? null, processorProvider ?? null, extractModel ?? null, classifyModel ?? null],
  )
}

/** Deletes an organization with its policy, users and keys. Vaults stay. */
export async function deleteOrg(tx: Transaction, id: string): Promise<void> {
  await tx.query('delete from orgs where id = $1', [id])
}

/** Lists the shared vault, and the private vaults of its users and of its own key. */
export async function listOrgVaults(tx: Transaction, id: string): Promise<string[]> {
  const { rows } = await tx.query<{ vault: string }>(
    `select vault from orgs where id = $1
     union select vault from org_users where org = $1
     union select vault from memory_keys where org = $1`,
    [id],
  )
  return rows.map(({ vault }) => vault)
}

/** Deletes stored responses to requests about an organization, which may contain raw keys and names. */
export async function deleteOrgResponses(tx: Transaction, id: string): Promise<void> {
  await tx.query(`delete from idempotency where ${organizationRouteSql('$1::uuid')}`, [id])
}

/** The same refusal for an organization of another admin, a removed one and an unknown one. */
export const missingOrganization = (): Refusal =>
  new Refusal('missing', 'No such organization', 'GET /v1/orgs lists yours')

export const isUniqueViolation = (error: unknown): boolean =>
  (error as { code?: string }).code === '23505'

/** Whether an earlier attempt of this request has removed its object. */
export async function isRemovalRecorded(query: Query, operation: string): Promise<boolean> {
  const { rows } = await query('select 1 from policy_removals where operation = $1', [operation])
  return rows.length > 0
}

/** Records for 25 hours that a request has removed its object. */
export async function recordRemoval(
  { query }: Transaction,
  { operation, org }: { operation: string; org: string },
): Promise<void> {
  await query('insert into policy_removals (operation, org) values ($1, $2)', [operation, org])
}

/** Deletes stored responses to members that may show changed memories. */
export async function deleteMemberResponses({ query }: Transaction, org: string): Promise<void> {
  await query(
    `delete from idempotency
     where key_hash in (select hash from memory_keys where org = $1) and route = any($2)`,
    [org, routesShowingMemories],
    'shared.answers',
  )
}

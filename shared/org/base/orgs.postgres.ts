import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { organizationRouteSql } from '#shared/operations/idempotency.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { routesShowingMemories } from '#shared/vault/base/erasures.postgres.ts'

/** An organization, its owner, and the current state of its shared vault. */
export type OrgRow = {
  id: string
  /** The owner's account: it pays for what members do. */
  account: string
  ownerEmail: string
  /** The shared vault. */
  vault: string
  epoch: number
  revision: number
  /** The vault space of all its memories; null until it has been determined. */
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
 * An organization of an account; undefined for any other id.
 *
 * @param reviews the only one that a reviewer may look at; null for admins
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

/** The account that an organization belongs to; undefined once it is removed. */
export async function findOrgAccount(query: Query, id: string): Promise<string | undefined> {
  const { rows } = await query<{ account: string }>('select account from orgs where id = $1', [id])
  return rows[0]?.account
}

/** Every organization of an account, oldest first; of a reviewer the one that they look at. */
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
 * Locks an organization of an account, so that changes to its policy follow one another, and raises the
 * version of its policy.
 *
 * @returns false for any other id.
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

/** @returns false when the account has an organization of that name, or this one already. */
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

/** Removes an organization with everything that refers to it: policy, users, keys. Vaults stay. */
export async function deleteOrg(tx: Transaction, id: string): Promise<void> {
  await tx.query('delete from orgs where id = $1', [id])
}

/** The shared vault, and the private vaults of its users and of its own key. */
export async function listOrgVaults(tx: Transaction, id: string): Promise<string[]> {
  const { rows } = await tx.query<{ vault: string }>(
    `select vault from orgs where id = $1
     union select vault from org_users where org = $1
     union select vault from memory_keys where org = $1`,
    [id],
  )
  return rows.map(({ vault }) => vault)
}

/** Deletes stored responses to requests about an organization: they may contain raw keys and names. */
export async function deleteOrgResponses(tx: Transaction, id: string): Promise<void> {
  await tx.query(`delete from idempotency where ${organizationRouteSql('$1::uuid')}`, [id])
}

/** One refusal for an organization of another admin, a removed one and an unknown one. */
export const missingOrganization = (): Refusal =>
  new Refusal('missing', 'No such organization', 'GET /v1/orgs lists yours')

/** Whether an error is a unique violation: the name, label or email is taken. */
export const isUniqueViolation = (error: unknown): boolean =>
  (error as { code?: string }).code === '23505'

/** Whether an earlier attempt of this request has removed its object. */
export async function isRemovalRecorded(query: Query, operation: string): Promise<boolean> {
  const { rows } = await query('select 1 from policy_removals where operation = $1', [operation])
  return rows.length > 0
}

/** Records for a day that a request has removed its object. */
export async function recordRemoval(
  { query }: Transaction,
  { operation, org }: { operation: string; org: string },
): Promise<void> {
  await query('insert into policy_removals (operation, org) values ($1, $2)', [operation, org])
}

/** Deletes responses stored for members' Idempotency-Keys that may show changed memories. */
export async function deleteMemberResponses({ query }: Transaction, org: string): Promise<void> {
  await query(
    `delete from idempotency
     where key_hash in (select hash from memory_keys where org = $1) and route = any($2)`,
    [org, routesShowingMemories],
    'shared.answers',
  )
}

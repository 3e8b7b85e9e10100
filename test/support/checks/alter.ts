import { maskKey } from '#shared/access/key.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Backend } from '#shared/backend.ts'
import { accountOfOwner, type Owner } from '#test/support/checks/observe.ts'

/**
 * What tests change in the stores past the rules of the service: ages that would take days, losses,
 * faults. The names of tables and columns stand here and in `observe.ts`, which reads.
 */

type Stores = Pick<Backend, 'postgres' | 'mongo'>
type Postgres = Pick<Backend, 'postgres'>

/** Sets the balance of an account; null has no limit. */
export async function setBalance(
  backend: Postgres & Partial<Pick<Backend, 'verifiedKeys'>>,
  owner: Owner,
  balance: number | null,
): Promise<void> {
  await backend.postgres.query('update accounts set balance = $2 where id = $1', [
    await accountOfOwner(backend, owner),
    balance,
  ])
  // As after a request that changes it.
  backend.verifiedKeys?.noteChange()
}

/** Sets the payment method of an account; null is none. */
export const setPaymentMethod = ({ postgres }: Postgres, account: string, method: string | null) =>
  postgres.query('update accounts set payment_method = $2 where id = $1', [account, method])

/** So much time goes by for the login: clients, grants and tokens. */
export async function ageOAuth({ postgres }: Postgres, interval: string): Promise<void> {
  await postgres.query(
    `update oauth_records
     set expires_at = expires_at - $1::interval, consumed_at = consumed_at - $1::interval`,
    [interval],
  )
  await postgres.query('update applications set created_at = created_at - $1::interval', [interval])
}

/** Two hours go by for a vault: what is to end in it comes so much nearer. */
export async function letHoursPass(
  { postgres, mongo, verifiedKeys }: Stores & Pick<Backend, 'verifiedKeys'>,
  vault: string,
): Promise<void> {
  await mongo.memories.updateMany({ vault, expires_at: { $exists: true } }, [
    { $set: { expires_at: { $subtract: ['$expires_at', 2 * 3_600_000] } } },
  ])
  await postgres.query(
    `update vaults set next_expiry = next_expiry - interval '2 hours' where id = $1`,
    [vault],
  )
  verifiedKeys.noteChange()
}

/** Says that memories of a vault are over by now. */
export const makeExpiryDue = ({ postgres }: Postgres, vault: string) =>
  postgres.query('update vaults set next_expiry = now() where id = $1', [vault])

/** Adds a vault with this id, of an account with the same. */
export async function insertVault({ postgres }: Postgres, vault: string): Promise<void> {
  await postgres.query('insert into accounts (id, email) values ($1, $2)', [
    vault,
    `${vault}@example.com`,
  ])
  await postgres.query('insert into vaults (id, account) values ($1, $1)', [vault])
}

/** Sets the model by which new vaults are embedded. */
export const setDefaultEmbeddings = ({ postgres }: Postgres, model: string) =>
  postgres.query(`update settings set value = $1 where name = 'embeddings'`, [model])

/** Sets the space in which the shared memories of an organization are searched. */
export const setSpaceOfOrg = ({ postgres }: Postgres, org: string, space: string) =>
  postgres.query('update orgs set space = $2 where id = $1', [org, space])

/** Says that the statements of an organization were taken back so many minutes ago. */
export const setWithdrawn = ({ postgres }: Postgres, org: string, minutes: number) =>
  postgres.query(
    `update shared_statements set withdrawn_at = now() - make_interval(mins => $2) where org = $1`,
    [org, minutes],
  )

/** Raises the epoch of a vault and nothing else: what it stored before is not visible any more. */
export const raiseEpochOf = ({ postgres }: Postgres, vault: string) =>
  postgres.query('update vaults set epoch = epoch + 1 where id = $1', [vault])

/** Raises a session of a vault to epoch 1: what it stored before is not visible any more. */
export const clearSessionOf = ({ postgres }: Postgres, vault: string, session: string) =>
  postgres.query(
    `insert into sessions (vault, session, epoch) values ($1, $2, 1)
     on conflict (vault, session) do update set epoch = 1`,
    [vault, session],
  )

/** Replaces memories by tombstones of now, as a deletion does; without ids, all of the vault. */
export const tombstoneDocuments = ({ mongo }: Stores, vault: string, ids?: readonly string[]) =>
  mongo.memories.updateMany(
    {
      vault: { $eq: vault },
      tomb_at: { $exists: false },
      ...(ids && { _id: { $in: [...ids] } }),
    },
    [{ $replaceRoot: { newRoot: { _id: '$_id', vault: '$vault', tomb_at: '$$NOW' } } }],
  )

/** Removes memories from the store and leaves no tombstone. */
export const removeDocuments = ({ mongo }: Stores, vault: string, ids: readonly string[]) =>
  mongo.memories.deleteMany({ vault: { $eq: vault }, _id: { $in: [...ids] } })

/** Sets fields of a stored memory, past every rule of the service. */
export const setDocumentFields = (
  { mongo }: Stores,
  vault: string,
  id: string,
  fields: Record<string, unknown>,
) => mongo.memories.updateOne({ vault: { $eq: vault }, _id: { $eq: id } }, { $set: fields })

/** Makes every update of a table fail with `cut`, as a kill before the commit; returns what ends it. */
export async function cutUpdates(
  { postgres }: Postgres,
  table: string,
): Promise<{ restore(): Promise<unknown> }> {
  await postgres.query(
    `create or replace function cut() returns trigger language plpgsql
     as $$ begin raise exception 'cut'; end $$`,
  )
  await postgres.query(
    `create trigger cut before update on ${table} for each row execute function cut()`,
  )
  return {
    restore: () => postgres.query(`drop trigger cut on ${table}`),
  }
}

/** Columns that say when something happened, by table. */
const timeColumns = {
  accounts: ['created_at'],
  audit_events: ['created_at'],
  call_traces: ['created_at', 'expires_at'],
  idempotency: ['created_at'],
  memory_keys: ['last_used_at'],
  open_exchanges: ['renewed_at'],
  operations: ['created_at'],
  org_turns: ['created_at', 'finished_at'],
  policy_removals: ['created_at'],
  recalled_turns: ['kept_at'],
  shared_retrievals: ['created_at'],
  shared_statements: ['recorded_at'],
  shared_writes: ['created_at'],
  unanswered_turns: ['ended_at'],
} as const

/**
 * Makes the rows of a table older.
 *
 * @param age of PostgreSQL, such as `31 days`.
 * @param only the rows whose column has this value.
 */
export async function ageRows(
  { postgres }: Postgres,
  table: keyof typeof timeColumns,
  age: string,
  only?: { [Column in 'id' | 'memory' | 'idempotency' | 'vault' | 'org' | 'operation']?: string },
): Promise<void> {
  const older = timeColumns[table].map(column => `${column} = ${column} - $1::interval`)
  const [column, value] = Object.entries(only ?? {})[0] ?? []
  await postgres.query(
    `update ${table} set ${older.join(', ')} where $2::text is null or ${column ?? 'null'}::text = $2`,
    [age, value],
  )
}

/** Revokes a Memory Key, as another process does. */
export const revokeKey = ({ postgres }: Postgres, key: string) =>
  postgres.query('update memory_keys set revoked_at = now() where masked = $1', [maskKey(key)])

/** Ends a Memory Key now. */
export const expireKey = ({ postgres }: Postgres, hash: Buffer) =>
  postgres.query(
    `update memory_keys set expires_at = now() - interval '1 second' where hash = $1`,
    [hash],
  )

/** Ends the admin keys of an email address now. */
export const endAdminKeys = (
  { postgres }: Postgres,
  email: string,
  how: 'expires_at' | 'revoked_at',
) => postgres.query(`update admin_keys set ${how} = now() where email = $1`, [email])

/** Writes a wrong debt into a vault, as a defect would. */
export const falsifyDebt = ({ postgres }: Postgres, vault: string) =>
  postgres.query(
    `update vaults set raw_units = 7, raw_tokens = 70, tier2_count = 3, tier2_importance = 9
     where id = $1`,
    [vault],
  )

/** Makes erasures of all vaults, or of these, due. */
export const makeErasuresDue = ({ postgres }: Postgres, vaults?: readonly string[]) =>
  postgres.query(
    'update erasures set due_at = now() where vault = any(coalesce($1, array[vault]))',
    [vaults],
  )

/** Removes the erasures of vaults, as when they are done. */
export const removeErasures = ({ postgres }: Postgres, vaults: readonly string[]) =>
  postgres.query('delete from erasures where vault = any($1)', [vaults])

/** Removes the last migration from those that have run; returns what puts it back. */
export async function forgetLastMigration({
  postgres,
}: Postgres): Promise<{ name: string; restore(): Promise<unknown> }> {
  const { rows } = await postgres.query<{ name: string; run_on: Date }>(
    `delete from migrations where name = (select max(name) from migrations)
     returning name, run_on`,
  )
  const { name, run_on: runOn } = rows[0]!
  return {
    name,
    restore: () =>
      postgres.query('insert into migrations (name, run_on) values ($1, $2)', [name, runOn]),
  }
}

/** Renames a table, so that every statement on it fails; returns what brings it back. */
export async function hideTable(
  { postgres }: Postgres,
  table: string,
): Promise<{ restore(): Promise<unknown> }> {
  await postgres.query(`alter table ${table} rename to ${table}_away`)
  return {
    restore: () => postgres.query(`alter table ${table}_away rename to ${table}`),
  }
}

/** Makes billing an edit fail; returns what ends it. */
export async function failEditBills({
  postgres,
}: Postgres): Promise<{ restore(): Promise<unknown> }> {
  await postgres.query(
    `create function refuse_edits() returns trigger language plpgsql as
     $$ begin if new.kind = 'edit' then raise 'broken'; end if; return new; end $$`,
  )
  await postgres.query(
    `create trigger refuse_edits before insert on usage_events
     for each row execute function refuse_edits()`,
  )
  return {
    restore: () => postgres.query('drop function refuse_edits cascade'),
  }
}

/** Stores a model's tag of an organization. */
export const insertTag = ({ postgres }: Postgres, org: string, label: string, question: string) =>
  postgres.query('insert into org_tags (id, org, label, question) values ($1, $2, $3, $4)', [
    mintId(),
    org,
    label,
    question,
  ])

/** Ends a turn of an organization now, whatever its passes have done. */
export const endTurn = ({ postgres }: Postgres, turn: string) =>
  postgres.query('update org_turns set finished_at = now() where id = $1', [turn])

/** Lets an organization demand that its members sign in, without a login provider. */
export const demandSignIn = ({ postgres }: Postgres, org: string) =>
  postgres.query('update orgs set sign_in_required = true where id = $1', [org])

/** Removes the row of the instructions of an organization. */
export const removeInstructions = ({ postgres }: Postgres, org: string) =>
  postgres.query('delete from org_instructions where org = $1', [org])

/** Adds users with vaults to an organization. */
export const insertUsers = ({ postgres }: Postgres, org: string, count: number) =>
  postgres.query(
    `with vault as (
       insert into vaults (id, account)
       select gen_random_uuid(), o.account from orgs o, generate_series(1, $2::int) where o.id = $1
       returning id
     )
     insert into org_users (id, org, vault, team_member_id)
     select gen_random_uuid(), $1, id, id::text from vault`,
    [org, count],
  )

/**
 * Makes the shared writes that have not been finalized due for the sweep.
 *
 * @returns how many.
 */
export async function makeSharedWritesDue({ postgres }: Postgres): Promise<number> {
  const { rowCount } = await postgres.query(
    `update shared_writes set due_at = now() - interval '1 second' where state = 'pending'`,
  )
  return rowCount ?? 0
}

/** What the lines of all traces were recalled by, as an earlier release wrote it. */
export const setTraceReasons = ({ postgres }: Postgres, why: string) =>
  postgres.query(
    `update call_traces
     set trace = jsonb_set(trace, '{blocks,0,ranking,0,why}', jsonb_build_array($1::text))
     where trace #> '{blocks,0,ranking,0}' is not null`,
    [why],
  )

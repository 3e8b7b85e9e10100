import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/**
 * What tests look up or set in the stores when no endpoint of the service does it. The names of tables
 * and columns stand here.
 */

type Stores = Pick<Backend, 'postgres' | 'mongo'>
type Postgres = Pick<Backend, 'postgres'>

export type BilledEvent = {
  id: string
  kind: string
  model: string | null
  session: string | null
  inputTokens: number | null
  outputTokens: number | null
  memoryTokens: number | null
}

/** The usage events of the vault of a key, oldest first. */
export async function billedEvents(backend: Backend, key: string): Promise<BilledEvent[]> {
  return billedEventsOfVault(backend, (await resolveCaller(backend, key)).scope.vault)
}

/** The usage events of a vault, oldest first. */
export async function billedEventsOfVault(
  { postgres }: Postgres,
  vault: string,
): Promise<BilledEvent[]> {
  const { rows } = await postgres.query<BilledEvent>(
    `select id, kind, model, session, input_tokens as "inputTokens",
            output_tokens as "outputTokens", memory_tokens as "memoryTokens"
     from usage_events where vault = $1 order by at, id`,
    [vault],
  )
  return rows
}

/** An account, named by its id or by the id of a vault of it. */
type Owner = { account: string } | { vault: string }

const accountOf = async ({ postgres }: Postgres, owner: Owner): Promise<string> => {
  if ('account' in owner) return owner.account
  const { rows } = await postgres.query<{ account: string }>(
    'select account from vaults where id = $1',
    [owner.vault],
  )
  return rows[0]!.account
}

/** The balance of an account; null has no limit. */
export async function balanceOf(backend: Postgres, owner: Owner): Promise<number | null> {
  const { rows } = await backend.postgres.query<{ balance: string | null }>(
    'select balance from accounts where id = $1',
    [await accountOf(backend, owner)],
  )
  const { balance } = rows[0]!
  return balance === null ? null : Number(balance)
}

/** Sets the balance of an account; null has no limit. */
export async function setBalance(
  backend: Postgres,
  owner: Owner,
  balance: number | null,
): Promise<void> {
  await backend.postgres.query('update accounts set balance = $2 where id = $1', [
    await accountOf(backend, owner),
    balance,
  ])
}

/** Sets the payment method of an account; null is none. */
export async function setPaymentMethod(
  { postgres }: Postgres,
  account: string,
  method: string | null,
): Promise<void> {
  await postgres.query('update accounts set payment_method = $2 where id = $1', [account, method])
}

/** The id of the account with an email address. */
export async function accountIdOf({ postgres }: Postgres, email: string): Promise<string> {
  const { rows } = await postgres.query<{ id: string }>(
    'select id from accounts where email = $1',
    [email],
  )
  return rows[0]!.id
}

/** The vault of a user of an organization. */
export async function vaultOfUser({ postgres }: Postgres, user: string): Promise<string> {
  const { rows } = await postgres.query<{ vault: string }>(
    'select vault from org_users where id = $1',
    [user],
  )
  return rows[0]!.vault
}

/** The vault that an organization shares, with its epoch. */
export async function sharedVaultOf(
  { postgres }: Postgres,
  org: string,
): Promise<{ vault: string; epoch: number }> {
  const { rows } = await postgres.query<{ vault: string; epoch: number }>(
    'select v.id as vault, v.epoch from orgs o join vaults v on v.id = o.vault where o.id = $1',
    [org],
  )
  return rows[0]!
}

export type VaultRow = {
  rawUnits: number
  rawTokens: number
  tier2Count: number
  tier2Importance: number
  tier2Tokens: number
  /** Operations that are accepted and not finished. */
  pending: number
  nextExpiry: Date | null
}

/** The row of a vault. */
export async function vaultRow({ postgres }: Postgres, vault: string): Promise<VaultRow> {
  const { rows } = await postgres.query<VaultRow>(
    `select raw_units::int as "rawUnits", raw_tokens::int as "rawTokens",
            tier2_count::int as "tier2Count", tier2_importance::int as "tier2Importance",
            tier2_tokens::int as "tier2Tokens", pending, next_expiry as "nextExpiry"
     from vaults where id = $1`,
    [vault],
  )
  return rows[0]!
}

/** Raises the epoch of a vault and nothing else: what it stored before is not visible any more. */
export async function raiseEpochOf({ postgres }: Postgres, vault: string): Promise<void> {
  await postgres.query('update vaults set epoch = epoch + 1 where id = $1', [vault])
}

/** Raises a session of a vault to epoch 1: what it stored before is not visible any more. */
export async function clearSessionOf(
  { postgres }: Postgres,
  vault: string,
  session: string,
): Promise<void> {
  await postgres.query(
    `insert into sessions (vault, session, epoch) values ($1, $2, 1)
     on conflict (vault, session) do update set epoch = 1`,
    [vault, session],
  )
}

/** How many rows a table has. */
export async function countRows({ postgres }: Postgres, table: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(`select count(*)::int as n from ${table}`)
  return rows[0]!.n
}

/** A whole table as JSON, to prove that it does not hold a secret. */
export async function tableText({ postgres }: Postgres, table: string): Promise<string> {
  return JSON.stringify((await postgres.query(`select * from ${table}`)).rows)
}

/** Every table of the service and of its queue, quoted, with its schema. */
async function tablesOf({ postgres }: Postgres): Promise<string[]> {
  const { rows } = await postgres.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema in ('public', 'pgboss') and table_type = 'BASE TABLE'`,
  )
  return rows.map(({ name }) => name)
}

/** The tables, of all or of those named, with a row that a pattern of Postgres matches in any case. */
export async function tablesHolding(
  backend: Postgres,
  pattern: string,
  tables?: readonly string[],
): Promise<string[]> {
  const holding: string[] = []
  for (const name of tables ?? (await tablesOf(backend))) {
    const { rows } = await backend.postgres.query(
      `select 1 from ${name} x where x::text ~* $1 limit 1`,
      [pattern],
    )
    if (rows.length > 0) holding.push(name)
  }
  return holding
}

/** Whether the text of any memory matches a regular expression; case does not matter. */
export async function isStoredAnywhere(
  { postgres, mongo }: Stores,
  text: string,
): Promise<boolean> {
  const { rows } = await postgres.query<{ id: string }>('select id from vaults')
  for (const { id } of rows) {
    const found = await mongo.memories.findOne({
      vault: { $eq: id },
      text: { $regex: text, $options: 'i' },
    })
    if (found) return true
  }
  return false
}

/** How many memories and tombstones a vault stores, of every epoch. */
export const countDocuments = ({ mongo }: Stores, vault: string): Promise<number> =>
  mongo.memories.countDocuments({ vault: { $eq: vault } })

/** Everything that a vault stores, in the order of the ids. */
export const storedDocuments = ({ mongo }: Stores, vault: string) =>
  mongo.memories
    .find({ vault: { $eq: vault } })
    .sort({ _id: 1 })
    .toArray()

/** Replaces memories by tombstones of now, as a deletion does; without ids, all of the vault. */
export const buryDocuments = ({ mongo }: Stores, vault: string, ids?: readonly string[]) =>
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

/** How many operations of these vaults are accepted or running. */
export async function countOpenOperations(
  { postgres }: Postgres,
  vaults: readonly string[],
): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from operations
     where vault = any($1) and state in ('accepted', 'running')`,
    [vaults],
  )
  return rows[0]!.n
}

/** The state of an operation, or undefined when there is no such operation. */
export async function operationState(
  { postgres }: Postgres,
  id: string,
): Promise<string | undefined> {
  const { rows } = await postgres.query<{ state: string }>(
    'select state from operations where id = $1',
    [id],
  )
  return rows[0]?.state
}

/** Waits until no exchange with a provider and no operation is open. */
export const waitUntilIdle = ({ postgres }: Postgres): Promise<void> =>
  waitUntil('no exchange and no operation is open', async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select (select count(*) from open_exchanges)::int
            + (select count(*) from operations where state in ('accepted', 'running'))::int as n`,
    )
    return rows[0]!.n === 0
  })

/** The jobs of a queue with their data, oldest first, completed ones included. */
export async function jobsOf<Data = Record<string, unknown>>(
  { postgres }: Postgres,
  queue: JobName,
): Promise<{ id: string; state: string; data: Data }[]> {
  const { rows } = await postgres.query<{ id: string; state: string; data: Data }>(
    'select id, state::text, data from pgboss.job where name = $1 order by created_on, id',
    [queue],
  )
  return rows
}

/** Makes the waiting jobs of a queue due. */
export async function makeJobsDue({ postgres }: Postgres, queue: JobName): Promise<void> {
  await postgres.query(
    `update pgboss.job set start_after = now() where name = $1 and state < 'active'`,
    [queue],
  )
}

/** Loses the stored answers of requests with an Idempotency-Key, as a killed process does. */
export async function loseAnswers({ postgres }: Postgres, idempotencyKey?: string): Promise<void> {
  await postgres.query(
    `update idempotency set answer = null, locked_until = now() - interval '1 second'
     where idempotency = coalesce($1, idempotency)`,
    [idempotencyKey ?? null],
  )
}

/** The deliveries of a webhook, whatever their state. */
export async function webhookDeliveriesOf(
  { postgres }: Postgres,
  webhook: string,
): Promise<{ event: string; data: Record<string, unknown> }[]> {
  const { rows } = await postgres.query<{ event: string; data: Record<string, unknown> }>(
    'select event, data from webhook_deliveries where webhook = $1 order by due_at, id',
    [webhook],
  )
  return rows
}

/** Makes every update of a table fail with `cut`, as a kill before the commit; returns what ends it. */
export async function cutUpdates(
  { postgres }: Postgres,
  table: string,
): Promise<{ restore(): Promise<void> }> {
  await postgres.query(
    `create or replace function cut() returns trigger language plpgsql
     as $$ begin raise exception 'cut'; end $$`,
  )
  await postgres.query(
    `create trigger cut before update on ${table} for each row execute function cut()`,
  )
  return {
    restore: async () => {
      await postgres.query(`drop trigger cut on ${table}`)
    },
  }
}

import type { Backend } from '#shared/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

/**
 * What tests read in the stores when no endpoint of the service shows it. The names of tables and
 * columns stand here and in `alter.ts`, which changes what is stored; operations, jobs and
 * deliveries have `observe-jobs.ts` and `alter-jobs.ts`.
 */

type Stores = Pick<Backend, 'postgres' | 'mongo'>
type Postgres = Pick<Backend, 'postgres'>
type Statement = [stores: Postgres, text: string, values?: readonly unknown[]]

export async function readRows<Row extends object>(...[stores, text, values]: Statement) {
  return (await stores.postgres.query<Row>(text, values)).rows
}

/** The one column that a statement gives. */
export async function readColumn<Value>(...statement: Statement): Promise<Value[]> {
  return (await readRows<Record<string, Value>>(...statement)).map(row => Object.values(row)[0]!)
}

/** The one value that a statement gives. */
export async function readValue<Value>(...statement: Statement): Promise<Value> {
  const [row] = await readRows<Record<string, Value>>(...statement)
  return Object.values(row!)[0]!
}

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
export const billedEventsOfVault = (stores: Postgres, vault: string) =>
  readRows<BilledEvent>(
    stores,
    `select id, kind, model, session, input_tokens as "inputTokens",
            output_tokens as "outputTokens", memory_tokens as "memoryTokens"
     from usage_events where vault = $1 order by at, id`,
    [vault],
  )

/** An account, named by its id or by the id of a vault of it. */
export type Owner = { account: string } | { vault: string }

/** The id of the account of an owner. */
export const accountOfOwner = async (stores: Postgres, owner: Owner): Promise<string> =>
  'account' in owner
    ? owner.account
    : readValue(stores, 'select account from vaults where id = $1', [owner.vault])

/** Whether an operation is billed. */
export const isBilled = async (stores: Postgres, operation: string): Promise<boolean> =>
  (await readRows(stores, 'select from usage_events where id = $1', [operation])).length > 0

/** The balance of an account; null has no limit. */
export async function balanceOf(backend: Postgres, owner: Owner): Promise<number | null> {
  const account = await accountOfOwner(backend, owner)
  const text = 'select balance from accounts where id = $1'
  const balance = await readValue<string | null>(backend, text, [account])
  return balance === null ? null : Number(balance)
}

/** The id of the account with an email address. */
export const accountIdOf = (stores: Postgres, email: string) =>
  readValue<string>(stores, 'select id from accounts where email = $1', [email])

/** The vault of a user of an organization. */
export const vaultOfUser = (stores: Postgres, user: string) =>
  readValue<string>(stores, 'select vault from org_users where id = $1', [user])

/** The vault of an organization and those of its users. */
export const vaultsOfOrg = (stores: Postgres, org: string) =>
  readColumn<string>(
    stores,
    'select vault from orgs where id = $1 union select vault from org_users where org = $1',
    [org],
  )

/** The vaults of an account. */
export const vaultsOfAccount = (stores: Postgres, account: string) =>
  readColumn<string>(stores, 'select id from vaults where account = $1', [account])

/** The email address of the account that an organization belongs to. */
export const ownerEmailOf = (stores: Postgres, org: string) =>
  readValue<string>(
    stores,
    'select a.email from orgs o join accounts a on a.id = o.account where o.id = $1',
    [org],
  )

/** The vault that an organization shares, with its epoch. */
export async function sharedVaultOf(stores: Postgres, org: string) {
  const text =
    'select v.id as vault, v.epoch from orgs o join vaults v on v.id = o.vault where o.id = $1'
  return (await readRows<{ vault: string; epoch: number }>(stores, text, [org]))[0]!
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
export async function vaultRow(stores: Postgres, vault: string): Promise<VaultRow> {
  const [row] = await readRows<VaultRow>(
    stores,
    `select raw_units::int as "rawUnits", raw_tokens::int as "rawTokens",
            tier2_count::int as "tier2Count", tier2_importance::int as "tier2Importance",
            tier2_tokens::int as "tier2Tokens", pending, next_expiry as "nextExpiry"
     from vaults where id = $1`,
    [vault],
  )
  return row!
}

/** A table, or those of its rows whose column `org`, `account` or `vault` is this one. */
type Rows =
  | string
  | { table: string; org: string }
  | { table: string; account: string }
  | { table: string; vault: string }

/** How many rows a table has. */
export function countRows(stores: Postgres, of: Rows): Promise<number> {
  const { table, ...owner } = typeof of === 'string' ? { table: of } : of
  const [column, id] = Object.entries(owner)[0] ?? []
  const where = `$1::uuid is null or ${column ?? 'null'} = $1`
  return readValue(stores, `select count(*)::int from ${table} where ${where}`, [id])
}

/** A whole table as JSON, to prove that it does not hold a secret. */
export const tableText = async (stores: Postgres, table: string): Promise<string> =>
  JSON.stringify(await readRows(stores, `select * from ${table}`))

/** The writes of shared memories of an organization as JSON, to prove that they hold no words. */
export const sharedWritesText = async (stores: Postgres, org: string): Promise<string> =>
  JSON.stringify(await readRows(stores, 'select * from shared_writes where org = $1', [org]))

/** When the one statement of a member was noted. */
export const statementNotedAt = (stores: Postgres, author: string) =>
  readValue<Date>(stores, 'select recorded_at from shared_statements where author = $1', [author])

/** How many parts of the saved indexes of a vault are stored. */
export const countSnapshotParts = (stores: Postgres, vault: string) =>
  readValue<number>(stores, 'select count(*)::int as n from index_snapshots where vault = $1', [
    vault,
  ])

/** Every table of the service and of its queue, quoted, with its schema. */
const tablesOf = (stores: Postgres) =>
  readColumn<string>(
    stores,
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema in ('public', 'pgboss') and table_type = 'BASE TABLE'`,
  )

/** The tables, of all or of those named, with a row that a pattern of Postgres matches in any case. */
export async function tablesHolding(
  backend: Postgres,
  pattern: string,
  tables?: readonly string[],
): Promise<string[]> {
  const holding: string[] = []
  for (const name of tables ?? (await tablesOf(backend))) {
    const text = `select 1 from ${name} x where x::text ~* $1 limit 1`
    if ((await readRows(backend, text, [pattern])).length > 0) holding.push(name)
  }
  return holding
}

/** What the service stores in Postgres: of each table a digest of its rows but for when keys were used. */
export async function storedDigests(backend: Postgres): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  const row = `(to_jsonb(x) - 'last_used_at')::text`
  for (const name of (await tablesOf(backend)).filter(name => name.startsWith('public.'))) {
    const digest = `coalesce(md5(string_agg(${row}, ',' order by ${row})), 'none')`
    digests[name] = await readValue(backend, `select ${digest} from ${name} x`)
  }
  return digests
}

/** Whether the text of any memory matches a regular expression; case does not matter. */
export async function isStoredAnywhere(stores: Stores, text: string): Promise<boolean> {
  for (const vault of await readColumn<string>(stores, 'select id from vaults')) {
    const said = { vault: { $eq: vault }, text: { $regex: text, $options: 'i' } }
    if (await stores.mongo.memories.findOne(said)) return true
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

/** How many memories of all vaults belong to an earlier epoch of their vault. */
export async function countStaleDocuments(stores: Stores): Promise<number> {
  const text = 'select id as vault, epoch from vaults'
  let count = 0
  for (const { vault, epoch } of await readRows<{ vault: string; epoch: number }>(stores, text)) {
    count += await stores.mongo.memories.countDocuments({ vault, epoch: { $lt: epoch } })
  }
  return count
}

/** How many sessions of a vault have a row. */
export const countSessions = (stores: Postgres, vault: string) =>
  readValue<number>(stores, 'select count(*)::int as n from sessions where vault = $1', [vault])

/** The audit events of an organization, oldest first. */
export const auditEventsOf = (stores: Postgres, org: string) =>
  readRows<{ memory: string; action: string; actor: string }>(
    stores,
    'select memory, action, actor from audit_events where org = $1 order by created_at, id',
    [org],
  )

/** When the key with this id was last used, or null. */
export const lastUseOf = (stores: Postgres, keyId: string) =>
  readValue<Date | null>(stores, 'select last_used_at from memory_keys where id = $1', [keyId])

/** The kinds of the usage events that the passes of an account's organizations cost, sorted. */
export const teamBillsOf = (stores: Postgres, account: string) =>
  readColumn<string>(
    stores,
    `select kind from usage_events where account = $1 and kind like 'org-%' order by kind`,
    [account],
  )

/** What pass 3 of a turn decided for each fact. */
export async function decisionsOfTurn(stores: Postgres, turn: string): Promise<string[]> {
  const text = 'select pass3 from org_turns where id = $1'
  return (await readValue<{ action: string }[]>(stores, text, [turn])).map(({ action }) => action)
}

/** Those of these turns that are stored. */
export const existingTurns = (stores: Postgres, turns: readonly string[]) =>
  readColumn<string>(stores, 'select id from org_turns where id = any($1)', [turns])

/** How long each turn of an organization took until it was finished, in milliseconds. */
export const turnDelays = (stores: Postgres, org: string) =>
  readColumn<number>(
    stores,
    `select round(extract(epoch from finished_at - created_at) * 1000)::float8
     from org_turns where org = $1 and finished_at is not null`,
    [org],
  )

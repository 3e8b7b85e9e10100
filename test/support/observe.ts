import type { Backend } from '#shared/backend.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'

/**
 * What tests read in the stores when no endpoint of the service shows it. The names of tables and
 * columns stand here and in `alter.ts`, which changes what is stored; operations, jobs and
 * deliveries have `observe-jobs.ts` and `alter-jobs.ts`.
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
export type Owner = { account: string } | { vault: string }

/** The id of the account of an owner. */
export const accountOfOwner = async ({ postgres }: Postgres, owner: Owner): Promise<string> => {
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
    [await accountOfOwner(backend, owner)],
  )
  const { balance } = rows[0]!
  return balance === null ? null : Number(balance)
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

/** The vault of an organization and those of its users. */
export async function vaultsOfOrg({ postgres }: Postgres, org: string): Promise<string[]> {
  const { rows } = await postgres.query<{ vault: string }>(
    'select vault from orgs where id = $1 union select vault from org_users where org = $1',
    [org],
  )
  return rows.map(({ vault }) => vault)
}

/** The vaults of an account. */
export async function vaultsOfAccount({ postgres }: Postgres, account: string): Promise<string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    'select id from vaults where account = $1',
    [account],
  )
  return rows.map(({ id }) => id)
}

/** The email address of the account that an organization belongs to. */
export async function ownerEmailOf({ postgres }: Postgres, org: string): Promise<string> {
  const { rows } = await postgres.query<{ email: string }>(
    'select a.email from orgs o join accounts a on a.id = o.account where o.id = $1',
    [org],
  )
  return rows[0]!.email
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

/** A table, or those of its rows whose column `org` or `account` is this one. */
type Rows = string | { table: string; org: string } | { table: string; account: string }

/** How many rows a table has. */
export async function countRows({ postgres }: Postgres, of: Rows): Promise<number> {
  const { table, ...owner } = typeof of === 'string' ? { table: of } : of
  const [column, id] = Object.entries(owner)[0] ?? []
  const { rows } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from ${table} where $1::uuid is null or ${column ?? 'null'} = $1`,
    [id],
  )
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

/** What the service stores in Postgres: of each table a digest of its rows but for when keys were used. */
export async function storedDigests(backend: Postgres): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  const row = `(to_jsonb(x) - 'last_used_at')::text`
  for (const name of (await tablesOf(backend)).filter(name => name.startsWith('public.'))) {
    const { rows } = await backend.postgres.query<{ digest: string }>(
      `select coalesce(md5(string_agg(${row}, ',' order by ${row})), 'none') as digest from ${name} x`,
    )
    digests[name] = rows[0]!.digest
  }
  return digests
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

/** How many memories of all vaults belong to an earlier epoch of their vault. */
export async function countStaleDocuments({ postgres, mongo }: Stores): Promise<number> {
  const { rows } = await postgres.query<{ id: string; epoch: number }>(
    'select id, epoch from vaults',
  )
  let count = 0
  for (const { id, epoch } of rows) {
    count += await mongo.memories.countDocuments({ vault: id, epoch: { $lt: epoch } })
  }
  return count
}

/** How many sessions of a vault have a row. */
export async function countSessions({ postgres }: Postgres, vault: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(
    'select count(*)::int as n from sessions where vault = $1',
    [vault],
  )
  return rows[0]!.n
}

/** The audit events of an organization, oldest first. */
export async function auditEventsOf(
  { postgres }: Postgres,
  org: string,
): Promise<{ memory: string; action: string; actor: string }[]> {
  const { rows } = await postgres.query<{ memory: string; action: string; actor: string }>(
    'select memory, action, actor from audit_events where org = $1 order by created_at, id',
    [org],
  )
  return rows
}

/** When the key with this id was last used, or null. */
export async function lastUseOf({ postgres }: Postgres, keyId: string): Promise<Date | null> {
  const { rows } = await postgres.query<{ last_used_at: Date | null }>(
    'select last_used_at from memory_keys where id = $1',
    [keyId],
  )
  return rows[0]!.last_used_at
}

/** The kinds of the usage events that the passes of an account's organizations cost, sorted. */
export async function teamBillsOf({ postgres }: Postgres, account: string): Promise<string[]> {
  const { rows } = await postgres.query<{ kind: string }>(
    `select kind from usage_events where account = $1 and kind like 'org-%' order by kind`,
    [account],
  )
  return rows.map(({ kind }) => kind)
}

/** What pass 3 of a turn decided for each fact. */
export async function decisionsOfTurn({ postgres }: Postgres, turn: string): Promise<string[]> {
  const { rows } = await postgres.query<{ pass3: { action: string }[] }>(
    'select pass3 from org_turns where id = $1',
    [turn],
  )
  return rows[0]!.pass3.map(({ action }) => action)
}

/** Those of these turns that are stored. */
export async function existingTurns(
  { postgres }: Postgres,
  turns: readonly string[],
): Promise<string[]> {
  const { rows } = await postgres.query<{ id: string }>(
    'select id from org_turns where id = any($1)',
    [turns],
  )
  return rows.map(({ id }) => id)
}

/** How long each turn of an organization took until it was finished, in milliseconds. */
export async function turnDelays({ postgres }: Postgres, org: string): Promise<number[]> {
  const { rows } = await postgres.query<{ ms: number }>(
    `select extract(epoch from finished_at - created_at)::float8 * 1000 as ms
     from org_turns where org = $1 and finished_at is not null`,
    [org],
  )
  return rows.map(({ ms }) => Math.round(ms))
}

import { mintId } from '#shared/core/ids.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { erasedResponse, organizationRouteSql } from '#shared/operations/idempotency.postgres.ts'

/**
 * A fact of a member in the shared memory: listed to the member and exported, but where a time is set.
 *
 * | removed_at | withdrawn_at | State |
 * |---|---|---|
 * | set | null | its memory is removed: hidden, back when it is restored, deleted after 30 days |
 * | any | set | taken back: hidden; the sweep ends it (`forgetStatement`) from this time on, which a failure sets ahead |
 */
export type SharedStatement = {
  id: string
  /** The organization's name for the member at the time. */
  author: string
  turn: string
  /** The place of the fact in the passes of the turn. */
  position: number
  /** The memory that was added, changed, or confirmed. */
  memory: string
  action: 'ADD' | 'UPDATE' | 'NONE'
  /** The memory had newer words. */
  outdated: boolean
  /** The fact in the member's words. */
  text: string
  saidAt: Date
  recordedAt: Date
}

const columns = `s.id, s.author, s.turn, s.position, s.memory, s.action, s.outdated, s.text,
  s.said_at as "saidAt", s.recorded_at as "recordedAt"`

/** Inserts the facts of a turn, each once; none when the member is gone. */
export async function insertStatements(
  { query }: Transaction,
  { turn, saidAt }: { turn: string; saidAt: Date },
  statements: readonly Pick<
    SharedStatement,
    'position' | 'memory' | 'action' | 'outdated' | 'text'
  >[],
): Promise<void> {
  if (statements.length === 0) return
  await query(
    `insert into shared_statements
       (id, org, org_user, author, turn, position, memory, action, outdated, text, said_at)
     select i.id, t.org, t.org_user, t.author, t.id, i.position, i.memory, i.action, i.outdated,
            i.text, $3
     from org_turns t, jsonb_to_recordset($2::jsonb) as i(
       id uuid, position int, memory uuid, action text, outdated boolean, text text)
     where t.id = $1
     on conflict (turn, position) do nothing`,
    [turn, JSON.stringify(statements.map(one => ({ id: mintId(), ...one }))), saidAt],
    'statements.insert',
  )
}

/** Epoch milliseconds and id of the last row of a page. */
export type StatementPosition = [saidAt: number, id: string]

/** Lists the next statements of a member whose memories exist, newest first. */
export async function statementsPage(
  query: Query,
  { org, member }: { org: string; member: string },
  { after, count }: { after: StatementPosition | undefined; count: number },
): Promise<SharedStatement[]> {
  const { rows } = await query<SharedStatement>(
    `select ${columns} from shared_statements s
     where s.org = $1 and s.org_user = $2 and s.removed_at is null and s.withdrawn_at is null
       and ($3::float8 is null or (s.said_at, s.id) < (to_timestamp($3 / 1000), $4::uuid))
     order by s.said_at desc, s.id desc limit $5`,
    [org, member, after?.[0] ?? null, after?.[1] ?? null, count],
    'statements.page',
  )
  return rows
}

export type ExportedStatement = SharedStatement & { user: string }

/** Lists statements whose memories exist, after an id, in the order of their ids. */
export async function statementsAfter(
  query: Query,
  org: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<ExportedStatement[]> {
  const { rows } = await query<ExportedStatement>(
    `select ${columns}, s.org_user as "user" from shared_statements s
     where s.org = $1 and ($2::uuid is null or s.id > $2)
       and s.removed_at is null and s.withdrawn_at is null
     order by s.id limit $3`,
    [org, after, limit],
  )
  return rows
}

/**
 * Takes a statement out of its member's list for good.
 *
 * @returns undefined when the member has no such statement.
 */
export async function markWithdrawn(
  query: Query,
  { org, member }: { org: string; member: string },
  id: string,
): Promise<SharedStatement | undefined> {
  const { rows } = await query<SharedStatement>(
    `update shared_statements s set withdrawn_at = coalesce(s.withdrawn_at, now())
     where s.id = $3 and s.org = $1 and s.org_user = $2
       and (s.removed_at is null or s.withdrawn_at is not null)
     returning ${columns}`,
    [org, member, id],
    'statements.withdraw',
  )
  return rows[0]
}

/** Lists the statements about a memory that were not taken back, oldest first. */
export async function listStatementsOfMemory(
  query: Query,
  org: string,
  memory: string,
): Promise<SharedStatement[]> {
  const { rows } = await query<SharedStatement>(
    `select ${columns} from shared_statements s
     where s.org = $1 and s.memory = $2 and s.withdrawn_at is null order by s.recorded_at, s.id`,
    [org, memory],
    'statements.of',
  )
  return rows
}

/** Lists withdrawals that have not ended, longest waiting first. */
export async function dueWithdrawals(
  query: Query,
  max: number,
): Promise<(SharedStatement & OrgVault)[]> {
  const { rows } = await query<SharedStatement & OrgVault>(
    `select ${columns}, o.id as org, v.id as vault, v.epoch
     from shared_statements s join orgs o on o.id = s.org join vaults v on v.id = o.vault
     where s.withdrawn_at < now() - interval '5 seconds' order by s.withdrawn_at limit $1`,
    [max],
    'statements.due',
  )
  return rows
}

/** Postpones a failed withdrawal by five minutes. */
export async function postponeWithdrawal(query: Query, id: string): Promise<void> {
  await query(
    `update shared_statements set withdrawn_at = now() + interval '5 minutes'
     where id = $1 and withdrawn_at is not null`,
    [id],
    'statements.postpone',
  )
}

/**
 * Ends a withdrawal: deletes the statement, and the member's words in the history of the memory, the trail of the
 * turn and stored responses.
 */
export async function forgetStatement(
  tx: Transaction,
  org: string,
  { id, author, memory, turn, position }: SharedStatement,
  /** The writes of the withdrawal, which show that it was made and stay. */
  writes: readonly string[],
): Promise<void> {
  const { query } = tx
  await query(
    `with own as (
       update shared_writes
       set before = case when before->>'author' = $3 then null else before end,
           after = case when after->>'author' = $3 then null else after end
       where id = any($4::uuid[]) and org = $1
     )
     delete from shared_writes
     where org = $1 and memory = $2 and state = 'done' and not id = any($4::uuid[])
       and (before->>'author' = $3 or after->>'author' = $3)`,
    [org, memory, author, writes],
    'statements.forget-history',
  )
  await forgetTurnFact(query, org, { turn, position })
  await eraseAdminResponses(tx, org, memory)
  await query('delete from shared_statements where id = $1', [id])
}

/** Records, in the transaction that finalizes it, that memories were removed or restored. */
export async function markStatementsRemoved(
  { query }: Transaction,
  org: string,
  { removed, restored }: { removed: readonly string[]; restored: readonly string[] },
): Promise<void> {
  if (removed.length + restored.length === 0) return
  await query(
    `update shared_statements
     set removed_at = case when memory = any($2::uuid[]) then now() end
     where org = $1 and memory = any($2::uuid[] || $3::uuid[])`,
    [org, removed, restored],
    'statements.removed',
  )
}

/** Deletes statements about memories that were removed 30 days ago. @returns how many. */
export async function dropRemovedStatements(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from shared_statements where id = any(array(
       select id from shared_statements
       where removed_at < now() - interval '30 days' and withdrawn_at is null limit 10000))`,
    [],
    'statements.drop',
  )
  return rowCount
}

/** Whether a member's words are shared, by their own decision and by that of their key. */
export type SharingPolicy = { member: boolean; key: boolean; privateKeyAt: Date | null }

export async function findSharing(query: Query, keyHash: Buffer): Promise<SharingPolicy> {
  const { rows } = await query<SharingPolicy>(
    `select u.shares as member, k.shares as key,
       (select max(created_at) from memory_keys
        where vault = u.vault and kind = 'user' and revoked_at is null) as "privateKeyAt"
     from memory_keys k join org_users u on u.id = k.org_user where k.hash = $1`,
    [keyHash],
    'sharing.find',
  )
  return rows[0] ?? { member: false, key: false, privateKeyAt: null }
}

/** @returns whether it was changed. */
export async function updateSharing(
  { query }: Transaction,
  { org, member }: { org: string; member: string },
  shares: boolean,
): Promise<boolean> {
  const { rowCount } = await query(
    'update org_users set shares = $3 where id = $2 and org = $1 and shares <> $3',
    [org, member, shares],
    'sharing.update',
  )
  return rowCount === 1
}

/** Empties the text of a fact in the trail of its turn. */
async function forgetTurnFact(
  query: Query,
  org: string,
  { turn, position }: { turn: string; position: number },
): Promise<void> {
  // The further memories of a fact have position + facts × n (pipeline/apply-decisions.ts): the remainder is the fact.
  await query(
    `with place as (
       select id, ($3::int % greatest(jsonb_array_length(pass3), 1))::text as fact
       from org_turns where id = $1 and org = $2
     )
     update org_turns t
     set pass1 = jsonb_set(pass1, array[p.fact, 'text'], '""', false),
         pass2 = jsonb_set(pass2, array[p.fact, 'text'], '""', false),
         pass3 = jsonb_set(
           jsonb_set(pass3, array[p.fact, 'text'], '""', false) #- array[p.fact, 'also'],
           array[p.fact, 'copy', 'text'], '""', false)
     from place p where t.id = p.id`,
    [turn, org, position],
    'statements.forget-trail',
  )
}

/**
 * Erases the texts of a removed memory: in its history, the trails of its turns and stored responses, and deletes
 * its statements. The audit, which holds no text, stays.
 */
export async function forgetMemory(tx: Transaction, org: string, memory: string): Promise<void> {
  const { query } = tx
  await query(
    `update shared_writes set before = null, after = null
     where org = $1 and memory = $2 and state = 'done'`,
    [org, memory],
    'shared.forget-history',
  )
  const { rows } = await query<{ turn: string; position: number }>(
    'delete from shared_statements where org = $1 and memory = $2 returning turn, position',
    [org, memory],
    'statements.forget-memory',
  )
  for (const fact of rows) await forgetTurnFact(query, org, fact)
  await eraseAdminResponses(tx, org, memory)
}

/**
 * Erases the responses stored for Idempotency-Keys of changes and reviews of shared memories, by any credential:
 * one may show the text of another memory. A repeated request is a conflict then; run again it would decide about
 * other words. Seedings answer with words of the request alone and stay.
 *
 * @param memory a request that runs about it now stores no response
 */
export async function eraseAdminResponses(
  { query }: Transaction,
  org: string,
  memory: string,
): Promise<void> {
  await query(
    `delete from idempotency
     where ${organizationRouteSql('$1::uuid')} and answer is null and locked_until > now()
       and route ~ ('^(POST|PATCH) /v1/orgs/' || $1::uuid || '/memories/' || $2::uuid || '(/|$)')`,
    [org, memory],
    'shared.running-answers',
  )
  // In one order: concurrent erasures must not wait for each other crosswise.
  await query(
    `with shown as (
       select key_hash, route, idempotency from idempotency
       where ${organizationRouteSql('$1::uuid')} and answer <> $2
         and route ~ ('^(POST|PATCH) /v1/orgs/' || $1::uuid || '/memories/')
       order by key_hash, route, idempotency for update
     )
     update idempotency i set answer = $2 from shown s
     where (i.key_hash, i.route, i.idempotency) = (s.key_hash, s.route, s.idempotency)`,
    [org, erasedResponse],
    'shared.admin-answers',
  )
}

import { limitsSql } from '#shared/access/key-row.postgres.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** The limits of a key under the names of the contract; dollars in millionths. */
export type StoredBudget = Record<'requests' | 'tokens' | 'micros', number | null>

/** Undefined: as it is. */
export type BudgetChange = { [Name in keyof StoredBudget]: StoredBudget[Name] | undefined }

/** SQL of a `StoredBudget`. */
const storedBudget = `json_build_object('requests', k.daily_requests, 'tokens', k.daily_tokens,
                                        'micros', k.monthly_micros)`

/**
 * Sets the budget of a key, and of those that share its limits.
 *
 * @returns its mask, and its budget before; undefined when the account has no such key.
 */
export async function updateKeyBudget(
  { query }: Transaction,
  account: string,
  id: string,
  change: BudgetChange,
) {
  const given = (['requests', 'tokens', 'micros'] as const).flatMap(name => [
    change[name] !== undefined,
    change[name] ?? null,
  ])
  const { rows } = await query<{ masked: string; before: StoredBudget; after: StoredBudget }>(
    `with named as (
       select k.id, k.masked, coalesce(k.limited_as, k.hash) as subject,
              ${storedBudget} as before
       from memory_keys k where k.id = $2 and k.account = $1 and k.kind = 'vault' for update
     ), changed as (
       update memory_keys k
       set daily_requests = case when $3 then $4 else k.daily_requests end,
           daily_tokens = case when $5 then $6 else k.daily_tokens end,
           monthly_micros = case when $7 then $8 else k.monthly_micros end
       from named where k.account = $1 and (k.hash = named.subject or k.limited_as = named.subject)
       returning k.id, ${storedBudget} as after
     )
     select named.masked, named.before, changed.after from named join changed using (id)`,
    [account, id, ...given],
    'account-keys.update-budget',
  )
  return rows[0]
}

const toldMax = 1_000

/**
 * Tells the webhooks of accounts of budgets of which 80 %, or all, is used: each once in its window. Use that a process
 * has not reported yet is not seen.
 *
 * @returns how many.
 */
export function tellBudgets({
  postgres,
  queue,
}: {
  postgres: Postgres
  queue: Queue
}): Promise<number> {
  return postgres.transaction(async tx => {
    const { rows } = await tx.query<{ account: string; isUsedUp: boolean; data: object }>(
      `with counted as (
         select p.key, p.points, p.expire, k.account, k.masked, k.id, v.external_id,
                split_part(p.key, ':', 1) as what, ${limitsSql}
         from budget_points p
         join memory_keys k on k.hash = decode(
           case when length(split_part(p.key, ':', 3)) = 43
             then translate(split_part(p.key, ':', 3), '-_', '+/') || '=' end, 'base64')
         join vaults v on v.id = k.vault join accounts a on a.id = k.account
         where p.expire > $1
       ), limited as (
         select *, case what when 'requests' then "dailyRequests" when 'tokens' then "dailyTokens"
                   else "monthlyMicros" end as most,
                case what when 'dollars' then 1000000.0 else 1 end as unit
         from counted
       ), due as (
         select *, points >= most as full from limited where points >= most * 0.8 limit ${toldMax}
       )
       update budget_points p
       set warned_until = p.expire, used_up_until = case when due.full then p.expire else p.used_up_until end
       from due
       where p.key = due.key and (p.warned_until is distinct from p.expire
         or (due.full and p.used_up_until is distinct from p.expire))
       returning due.account, due.full as "isUsedUp",
         json_build_object('key', due.masked, 'key_id', due.id, 'external_id', due.external_id, 'what', due.what,
           'limit', (due.most / due.unit)::float8, 'used', (due.points / due.unit)::float8,
           'resets_at', to_char(to_timestamp(due.expire / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as data`,
      [Date.now()],
      'budgets.tell',
    )
    const nameOf = ({ isUsedUp }: { isUsedUp: boolean }) =>
      isUsedUp ? 'budget.used_up' : 'budget.warning'
    const events = rows.map(row => ({ ...row, event: nameOf(row) }) as const)
    await emitWebhookEvents(tx, queue, events)
    return rows.length
  })
}

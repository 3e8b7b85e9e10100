import { routesShowingMemories } from '#shared/vault/base/erasures.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Bills the storage of shared memories to the organization's owner, under the organization's own key. An
 * id is billed once.
 */
export async function billSharedMemories(
  { query }: Transaction,
  org: string,
  bills: readonly { id: string; tokens: number }[],
): Promise<void> {
  if (bills.length === 0) return
  await query(
    `with owner as (
       select o.account, o.vault, k.hash from orgs o
       join lateral (select hash from memory_keys
                     where org = o.id and org_user is null order by created_at desc limit 1) k on true
       where o.id = $1
     ), billed as (
       insert into usage_events (id, account, vault, key_hash, kind, memory_tokens)
       select item.id, account, vault, hash, 'org-memory', item.tokens
       from owner, unnest($2::uuid[], $3::int[]) as item(id, tokens)
       on conflict (id) do nothing returning account, memory_tokens
     )
     update accounts a set balance = balance - b.tokens
     from (select account, sum(memory_tokens) as tokens from billed group by account) b
     where a.id = b.account and a.balance is not null`,
    [org, bills.map(({ id }) => id), bills.map(({ tokens }) => tokens)],
    'shared.bill',
  )
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

import {
  deliveriesColumn,
  type WrittenDelivery,
} from '#shared/operations/finished-deliveries.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import type { Transaction, Query } from '#shared/storage/postgres/connect.ts'
import type { PartitionChange, DebtChange } from '#shared/domain/vault-change.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { accountVaultSql } from '#shared/operations/account-vaults.postgres.ts'

/**
 * Makes a write visible: raises the revision, logs which ids every process reads again or drops, and changes the
 * debt. Call it after MongoDB has acknowledged the write, in the transaction that finalizes the work.
 */
export async function changeVault(
  tx: Pick<Transaction, 'query'>,
  vault: string,
  changes: readonly PartitionChange[],
  debt: DebtChange = {},
  queue: Pick<Queue, 'send'> | null = null,
): Promise<number> {
  const items = JSON.stringify(
    changes.map(({ session, stored = [], removed = [], cleared = false, vectorsOnly = false }) => ({
      session: session ?? '',
      stored,
      removed,
      cleared,
      unsaid: vectorsOnly,
    })),
  )
  const { rows } = await tx.query<{ revision: number; deliveries: WrittenDelivery[] }>(
    `with raised as (
       update vaults v set revision = revision + 1,
         raw_units = raw_units + $3, raw_tokens = raw_tokens + $4,
         tier2_count = tier2_count + $5, tier2_importance = tier2_importance + $6,
         tier2_tokens = tier2_tokens + $7
       where id = $1
       returning ${suggestionColumns}, revision, raw_tokens - $4 as former_tokens,
                 tier2_importance - $6 as former_importance
     ), deliveries as (
       ${suggestionDeliveriesSql('raised')}
     ), logged as (
       insert into vault_changes (vault, revision, session, stored, removed, cleared)
       select $1, r.revision, i.session, i.stored, i.removed, i.cleared
       from raised r, jsonb_to_recordset($2::jsonb)
         as i(session text, stored uuid[], removed uuid[], cleared boolean)
     ), noted as (
       insert into sessions (vault, session, stored_at)
       select r.id, i.session, clock_timestamp()
       from raised r, jsonb_to_recordset($2::jsonb) as i(session text, stored uuid[], unsaid boolean)
       where i.session <> '' and i.stored <> '{}' and not i.unsaid
       on conflict (vault, session) do update set stored_at = excluded.stored_at
     )
     select revision, ${deliveriesColumn} from raised`,
    [
      vault,
      items,
      debt.rawUnits ?? 0,
      debt.rawTokens ?? 0,
      debt.tier2Count ?? 0,
      debt.tier2Importance ?? 0,
      debt.tier2Tokens ?? 0,
    ],
    'vaults.change',
  )
  const { revision, deliveries } = rows[0]!
  if (queue) await sendDeliveryJobs(tx, queue, deliveries)
  return revision
}

/**
 * SQL for the epoch after one: the seconds since 2025, or one more than before where that is later. An epoch is
 * never used again: counting on from a restored Postgres would repeat epochs and show cleared memories.
 */
export const nextEpochSql = (epoch: string): string =>
  `greatest(${epoch} + 1, floor(extract(epoch from clock_timestamp()) - 1735689600)::int)`

/** The first and the last of the epochs that no longer exist. */
type InvalidatedEpochs = { from: number; upTo: number }

/** Makes all memories of a vault invisible at once: those of earlier epochs no longer exist. */
export async function raiseEpoch(tx: Transaction, vault: string): Promise<InvalidatedEpochs> {
  const { rows } = await tx.query<InvalidatedEpochs>(
    `with held as (select id, epoch from vaults where id = $1 for no key update)
     update vaults v set epoch = ${nextEpochSql('v.epoch')}, revision = revision + 1, raw_units = 0,
            raw_tokens = 0, tier2_count = 0, tier2_importance = 0, tier2_tokens = 0
     from held where v.id = held.id returning held.epoch as "from", v.epoch - 1 as "upTo"`,
    [vault],
  )
  await tx.query('delete from vault_changes where vault = $1', [vault])
  return rows[0]!
}

/** Makes all memories of one session invisible at once; the epochs are the session's. */
export async function raiseSessionEpoch(
  tx: Transaction,
  vault: string,
  session: string,
): Promise<InvalidatedEpochs> {
  const { rows } = await tx.query<InvalidatedEpochs>(
    `with had as (select epoch from sessions where vault = $1 and session = $2 for update)
     insert into sessions (vault, session, epoch) values ($1, $2, ${nextEpochSql('0')})
     on conflict (vault, session)
       do update set epoch = ${nextEpochSql('sessions.epoch')}, stored_at = null
     returning coalesce((select epoch from had), 0) as "from", epoch - 1 as "upTo"`,
    [vault, session],
  )
  await changeVault(tx, vault, [{ session, cleared: true }])
  return rows[0]!
}

/** Takes a lock per vault and purpose until the transaction ends. */
export async function takeVaultAdvisoryLock(
  tx: Transaction,
  vault: string,
  purpose: string,
): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`${purpose}:${vault}`])
}

/** Locks a vault's row until the transaction ends. @returns its state. */
export async function lockVault(
  { query }: Transaction,
  vault: string,
): Promise<{ epoch: number; pending: number }> {
  const { rows } = await query<{ epoch: number; pending: number }>(
    'select epoch, pending from vaults where id = $1 for no key update',
    [vault],
    'vaults.lock',
  )
  return rows[0]!
}

/** The epochs of the given sessions, or of all sessions of a vault; those with epoch 0 are left out. */
export async function findSessionEpochs(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
  sessions?: readonly string[],
): Promise<Map<string, number>> {
  if (sessions?.length === 0) return new Map()
  const { rows } = await query<{ session: string; epoch: number }>(
    `select session, epoch from sessions
     where vault = $1 and epoch > 0 and ($2::text[] is null or session = any($2))`,
    [vault, sessions ?? null],
    'sessions.epochs',
  )
  return new Map(rows.map(({ session, epoch }) => [session, epoch]))
}

/** Rows without those whose session was cleared since they were stored. */
export async function withoutClearedSessions<
  Row extends { session: string | null; sessionEpoch: number },
>(query: Query, scope: Pick<VaultScope, 'vault'>, rows: readonly Row[]): Promise<Row[]> {
  const sessions = new Set(rows.flatMap(({ session }) => session ?? []))
  const epochs = await findSessionEpochs(query, scope, [...sessions])
  return rows.filter(
    ({ session, sessionEpoch }) => session === null || sessionEpoch === (epochs.get(session) ?? 0),
  )
}

/** The changes of memories in one list per session. */
export const changesBySession = (
  rows: readonly { id: string; session: string | null }[],
  toChange: (ids: string[]) => Omit<PartitionChange, 'session'>,
): PartitionChange[] =>
  Array.from(
    Map.groupBy(rows, ({ session }) => session),
    ([session, those]) => ({ session, ...toChange(those.map(({ id }) => id)) }),
  )

/** The current epoch of a vault; undefined when it was deleted. */
export async function findEpoch(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
): Promise<number | undefined> {
  const { rows } = await query<{ epoch: number }>(
    'select epoch from vaults where id = $1',
    [vault],
    'vaults.epoch',
  )
  return rows[0]?.epoch
}

/** What an update of `vaults v` returns for `suggestionDeliveriesSql`, with the former debt. */
export const suggestionColumns =
  'v.id, v.account, v.raw_units, v.raw_tokens, v.tier2_count, v.tier2_importance'

/**
 * SQL that writes the webhook messages `reflection.suggested` of vaults whose debt crosses a threshold, in the
 * statement that raises the debt: 50,000 raw tokens, or an importance of 150 (consolidate/debt.ts). Nothing is
 * written about the private vaults of members.
 *
 * @param raised a with-clause that returns `suggestionColumns`, `former_tokens` and `former_importance`
 */
export const suggestionDeliveriesSql = (raised: string): string =>
  `insert into webhook_deliveries (webhook, event, data)
   select w.id, 'reflection.suggested', jsonb_build_object(
     'key', coalesce((select masked from memory_keys where vault = v.id and revoked_at is null
                      order by created_at desc limit 1), ''),
     'tier', case when v.raw_tokens >= 50000 and v.former_tokens < 50000 then 1 else 2 end,
     'raw_units', v.raw_units, 'raw_tokens', v.raw_tokens,
     'tier2_count', v.tier2_count, 'tier2_importance', v.tier2_importance)
   from ${raised} v
   join webhooks w on w.account = v.account and w.disabled_at is null
     and 'reflection.suggested' = any(w.events)
   where (v.raw_tokens >= 50000 and v.former_tokens < 50000
          or v.tier2_importance >= 150 and v.former_importance < 150)
     and ${accountVaultSql('v.id')}
   returning id, webhook`

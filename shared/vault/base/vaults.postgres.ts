import {
  deliveriesColumn,
  type WrittenDelivery,
} from '#shared/operations/finished-deliveries.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import {
  suggestionColumns,
  suggestionDeliveriesSql,
} from '#shared/vault/base/suggestion-deliveries.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { PartitionChange, DebtChange } from '#shared/domain/vault-change.ts'

/**
 * Makes a write visible: raises the revision, logs which ids every process reads again or drops, and changes
 * the debt. Call it after MongoDB has acknowledged the write, in the transaction that finalizes the work.
 *
 * @returns the new revision.
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
 * SQL for the epoch after one: the seconds since 2025, or one more than before where that is later. An epoch
 * is never used again: when Postgres is restored to an earlier day beside a later MongoDB, counting on from its
 * last epoch would repeat epochs and show memories that were cleared in them. A restore takes longer than a
 * second.
 */
export const nextEpochSql = (epoch: string): string =>
  `greatest(${epoch} + 1, floor(extract(epoch from clock_timestamp()) - 1735689600)::int)`

/** The first and the last of the epochs that no longer exist. */
export type InvalidatedEpochs = { from: number; upTo: number }

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

import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { CreatedReflection, Lease, SourceTier, LeaseWithState } from '#shared/domain/lease.ts'

/* A lease goes from leased to committing (commitLease) to committed (finalizeLease). */

/** Duration of a lease. */
const leaseMinutes = 15

/** Expired leases are deleted after this; until then a late commit gets the reason why it fails. */
const leaseRetentionDays = 30

/** The lease of a batch; undefined when this vault never leased it at its current epoch. */
export async function findLease(
  query: Query,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  batch: string,
): Promise<LeaseWithState | undefined> {
  const { rows } = await query<LeaseWithState>(
    `select batch, tier, model, source_ids as "sourceIds", expires_at as "expiresAt", state,
            json_build_object('from', covers_from, 'to', covers_to) as covers,
            expires_at <= clock_timestamp() as expired, coalesce(created, '[]') as created,
            consolidated
     from leases where batch = $1 and vault = $2 and epoch = $3`,
    [batch, vault, epoch],
    'leases.find',
  )
  return rows[0]
}

/** The memories of a tier that are leased or being committed. */
export async function leasedIds(
  { query }: Transaction,
  { vault, epoch }: VaultScope,
  tier: SourceTier,
): Promise<Set<string>> {
  const { rows } = await query<{ id: string }>(
    `select unnest(source_ids) as id from leases
     where vault = $1 and tier = $2 and epoch = $3
       and (state = 'committing' or (state = 'leased' and expires_at > clock_timestamp()))`,
    [vault, tier, epoch],
    'leases.lent',
  )
  return new Set(rows.map(({ id }) => id))
}

/** The batches of a vault whose commit is accepted and not finalized: the debt counts their sources. */
export async function listCommittingBatches(
  query: Query,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
): Promise<string[]> {
  const { rows } = await query<{ batch: string }>(
    `select batch from leases where vault = $1 and epoch = $2 and state = 'committing'`,
    [vault, epoch],
    'leases.committing',
  )
  return rows.map(({ batch }) => batch)
}

/**
 * Leases a batch for 15 minutes. Deletes the vault's leases that expired 30 days ago or belong to an earlier
 * epoch.
 *
 * @returns the end of the lease.
 */
export async function insertLease(
  { query }: Transaction,
  { vault, epoch }: VaultScope,
  { batch, tier, model, sourceIds, covers }: Omit<Lease, 'expiresAt'>,
): Promise<Date> {
  const { rows } = await query<{ expires_at: Date }>(
    `with forgotten as (
       delete from leases where vault = $2 and state = 'leased'
         and (epoch < $3 or expires_at < now() - make_interval(days => $9))
     )
     insert into leases (batch, vault, epoch, tier, model, source_ids, covers_from, covers_to, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + make_interval(mins => $10))
     returning expires_at`,
    [
      batch,
      vault,
      epoch,
      tier,
      model,
      sourceIds,
      covers.from,
      covers.to,
      leaseRetentionDays,
      leaseMinutes,
    ],
    'leases.insert',
  )
  return rows[0]!.expires_at
}

/**
 * Accepts the commit of a batch: from here on it becomes these reflections. Call it under the consolidation
 * lock, so that no checkout leases its memories at the same moment.
 *
 * @returns false, with nothing written, when the lease expired, was committed by another request or was deleted.
 */
export async function commitLease(
  { query }: Transaction,
  { vault, epoch }: VaultScope,
  batch: string,
  created: readonly CreatedReflection[],
): Promise<boolean> {
  const { rowCount } = await query(
    `update leases l set state = 'committing', created = $4::jsonb
     from vaults v
     where l.batch = $1 and l.vault = $2 and l.epoch = $3 and v.id = l.vault and v.epoch = l.epoch
       and l.state = 'leased' and l.expires_at > clock_timestamp()`,
    [batch, vault, epoch, JSON.stringify(created)],
    'leases.fence',
  )
  return rowCount === 1
}

/** @returns false when another run has finalized it: its effects must not count twice. */
export async function finalizeLease(
  { query }: Transaction,
  { vault, batch }: { vault: string; batch: string },
  consolidated: number,
): Promise<boolean> {
  const { rowCount } = await query(
    `update leases set state = 'committed', consolidated = $3, committed_at = now()
     where batch = $1 and vault = $2 and state = 'committing'`,
    [batch, vault, consolidated],
    'leases.settle',
  )
  return rowCount === 1
}

/** Deletes the lease of a batch whose vault was cleared during its commit. */
export async function deleteLease(
  { query }: Transaction,
  { vault, batch }: { vault: string; batch: string },
): Promise<void> {
  await query('delete from leases where batch = $1 and vault = $2', [batch, vault])
}

/** Sets the debt of a tier to 0. */
export async function clearDebt(
  { query }: Transaction,
  vault: string,
  tier: SourceTier,
): Promise<void> {
  await query(
    tier === 1
      ? 'update vaults set raw_units = 0, raw_tokens = 0 where id = $1'
      : 'update vaults set tier2_count = 0, tier2_importance = 0, tier2_tokens = 0 where id = $1',
    [vault],
  )
}

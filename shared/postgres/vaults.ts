import type { Transaction } from '#shared/postgres/connect.ts'

/** What one write changed in one part of a vault. */
export type PlaceChange = {
  /** The session vault, or null for the core vault and the reflections. */
  session: string | null
  stored?: readonly string[]
  removed?: readonly string[]
  /** Everything in this part went. */
  cleared?: boolean
}

/**
 * How the debt moves; every figure may be negative. So may the debt for a moment: what is stored can be
 * deleted or consolidated before it is settled, and the sum is right whichever comes first.
 */
export type DebtChange = {
  rawUnits?: number
  rawTokens?: number
  tier2Count?: number
  tier2Importance?: number
  tier2Tokens?: number
}

/**
 * Makes a write visible: the revision rises, the log tells every process which ids to read again or
 * to forget, and the debt moves. Call it after MongoDB has acknowledged, in the transaction that
 * settles the work.
 *
 * @returns the new revision.
 */
export async function changeVault(
  tx: Pick<Transaction, 'query'>,
  vault: string,
  changes: readonly PlaceChange[],
  debt: DebtChange = {},
): Promise<number> {
  const items = JSON.stringify(
    changes.map(({ session, stored = [], removed = [], cleared = false }) => ({
      session: session ?? '',
      stored,
      removed,
      cleared,
    })),
  )
  const { rows } = await tx.query<{ revision: string }>(
    `with raised as (
       update vaults set revision = revision + 1,
         raw_units = raw_units + $3, raw_tokens = raw_tokens + $4,
         tier2_count = tier2_count + $5, tier2_importance = tier2_importance + $6,
         tier2_tokens = tier2_tokens + $7
       where id = $1 returning revision
     ), logged as (
       insert into vault_changes (vault, revision, session, stored, removed, cleared)
       select $1, r.revision, i.session, i.stored, i.removed, i.cleared
       from raised r, jsonb_to_recordset($2::jsonb)
         as i(session text, stored uuid[], removed uuid[], cleared boolean)
     )
     select revision from raised`,
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
  return Number(rows[0]!.revision)
}

/**
 * Makes everything in a vault invisible at once: what carries an earlier epoch no longer exists.
 *
 * @returns the new epoch.
 */
export async function raiseEpoch(tx: Transaction, vault: string): Promise<number> {
  const { rows } = await tx.query<{ epoch: number }>(
    `update vaults set epoch = epoch + 1, revision = revision + 1, raw_units = 0, raw_tokens = 0,
            tier2_count = 0, tier2_importance = 0, tier2_tokens = 0
     where id = $1 returning epoch`,
    [vault],
  )
  await tx.query('delete from vault_changes where vault = $1', [vault])
  return rows[0]!.epoch
}

/** Makes everything in one session vault invisible at once. @returns the session's new epoch. */
export async function raiseSessionEpoch(
  tx: Transaction,
  vault: string,
  session: string,
): Promise<number> {
  const { rows } = await tx.query<{ epoch: number }>(
    `insert into sessions (vault, session, epoch) values ($1, $2, 1)
     on conflict (vault, session) do update set epoch = sessions.epoch + 1 returning epoch`,
    [vault, session],
  )
  await changeVault(tx, vault, [{ session, cleared: true }])
  return rows[0]!.epoch
}

/** One at a time per vault and purpose, until the transaction ends. */
export async function holdVault(tx: Transaction, vault: string, purpose: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`${purpose}:${vault}`])
}

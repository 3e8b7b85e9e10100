import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

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

/**
 * The epochs of the given sessions, or of all sessions of a vault. Sessions that were never cleared are left
 * out; their epoch is 0.
 */
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

import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * The same database, for what somebody does: every statement and every transaction that runs through it
 * is theirs, and what the account's events tell of it names them. Statements on their own become
 * transactions, so reads had better go past it.
 *
 * @param actor an admin's email, or a Memory Key, masked
 */
export function bindActor(postgres: Postgres, actor: string): Postgres {
  const transaction: Postgres['transaction'] = work =>
    postgres.transaction(async tx => {
      await tx.query(`select set_config('vault.actor', $1, true)`, [actor], 'acting.as')
      return work(tx)
    })
  return {
    ...postgres,
    transaction,
    query: (text, values, name) => transaction(tx => tx.query(text, values, name)),
  }
}

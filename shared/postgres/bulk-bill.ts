import { recordBill } from '#shared/postgres/bill.ts'
import type { Query, Transaction } from '#shared/postgres/connect.ts'

/** Takes back the bill an operation was accepted with: what it costs is known when it ends. */
export async function leaveUnbilled(query: Query, operation: string): Promise<void> {
  await query('delete from usage_events where id = $1', [operation], 'bulk.unbilled')
}

/**
 * Bills a file to whoever sent it, once, for what was stored of it; nothing stored is nothing billed.
 *
 * @returns what its answer says of the sender.
 */
export async function recordFileBill(
  tx: Transaction,
  operation: string,
  tokens: number,
): Promise<{ maskedKey: string; session: string | null }> {
  const { rows } = await tx.query<{
    account: string
    vault: string
    keyHash: Buffer
    kind: string
    session: string | null
    maskedKey: string
  }>(
    `select o.account, o.vault, o.key_hash as "keyHash", o.kind, o.session,
            coalesce(k.masked, '') as "maskedKey"
     from operations o left join memory_keys k on k.hash = o.key_hash where o.id = $1`,
    [operation],
    'bulk.sender',
  )
  const { maskedKey, ...sender } = rows[0]!
  if (tokens > 0) await recordBill(tx, { ...sender, id: operation, memoryTokens: tokens })
  return { maskedKey, session: sender.session }
}

import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Bills an operation that has ended to the key that requested it, once, under its own id; an
 * operation without effect is free.
 *
 * @returns the key and the session of the request, for the response.
 */
export async function recordDeferredBill(
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
    'late-bill.asker',
  )
  const { maskedKey, ...requester } = rows[0]!
  if (tokens > 0) await recordBill(tx, { ...requester, id: operation, memoryTokens: tokens })
  return { maskedKey, session: requester.session }
}

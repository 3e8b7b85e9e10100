import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { UsageEvent } from '#shared/billing/usage.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Bills an operation that has ended to the key that requested it, once, under its own id; an
 * operation without effect is free.
 */
export async function recordDeferredBill(
  tx: Transaction,
  operation: string,
  tokens: number,
): Promise<void> {
  if (tokens === 0) return
  const { rows } = await tx.query<Omit<UsageEvent, 'id' | 'memoryTokens'>>(
    'select account, vault, key_hash as "keyHash", kind, session from operations where id = $1',
    [operation],
    'deferred-bill.operation',
  )
  await recordBill(tx, { ...rows[0]!, id: operation, memoryTokens: tokens })
}

import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { UsageEvent } from '#shared/billing/usage.postgres.ts'

/**
 * Writes a bill in the transaction of the billed work, so that neither exists without the other. An
 * id is billed once.
 */
export async function recordBill({ query }: Transaction, event: UsageEvent): Promise<void> {
  await query(
    `with billed as (
       insert into usage_events (id, account, vault, key_hash, kind, model, session,
                                 input_tokens, output_tokens, memory_tokens)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
       on conflict (id) do nothing returning account, memory_tokens
     )
     update accounts a set balance = balance - b.memory_tokens
     from billed b where a.id = b.account and a.balance is not null`,
    [
      event.id,
      event.account,
      event.vault,
      event.keyHash,
      event.kind,
      event.model ?? null,
      event.session ?? null,
      event.inputTokens ?? 0,
      event.outputTokens ?? 0,
      event.memoryTokens,
    ],
    'usage.bill',
  )
}

import { accountVaultSql } from '#shared/operations/account-vaults.postgres.ts'

/** Of `suggestionDeliveriesSql`: what an update of `vaults v` returns beside the debt of before. */
export const suggestionColumns =
  'v.id, v.account, v.raw_units, v.raw_tokens, v.tier2_count, v.tier2_importance'

/**
 * SQL that writes the webhook messages `reflection.suggested` of vaults whose debt crosses a threshold: in
 * the statement that raises the debt, which every ingest runs. 50,000 raw tokens are an importance of
 * 150: see shared/vault/consolidate/debt.ts. Nothing is written about the private vaults of members.
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

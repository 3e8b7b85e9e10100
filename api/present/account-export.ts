import {
  presentAccountEvent,
  presentAccountPolicy,
  presentApplication,
  presentWebhook,
  type TypedLine,
} from '#api/present/account.ts'
import { presentOrgExportLine } from '#api/present/org-export.ts'
import { presentStoredTrace } from '#api/present/trace.ts'
import type { AccountExportItem } from '#shared/accounts/export-account.ts'
import type { AccountVault } from '#shared/accounts/export.postgres.ts'

/** A line of the export of an account. */
export function presentAccountExportLine(exported: AccountExportItem): TypedLine {
  switch (exported.type) {
    case 'account': {
      const { email, paymentMethod, balance, createdAt } = exported.account
      const created_at = createdAt.toISOString()
      return { type: 'account', email, payment_method: paymentMethod, balance, created_at }
    }
    case 'account_policy':
      return { type: 'policy', ...presentAccountPolicy(exported.policy) }
    case 'provider_key': {
      const { provider, masked, createdAt } = exported.key
      const created_at = createdAt.toISOString()
      return { type: 'provider_key', provider, masked_key: masked, created_at }
    }
    case 'webhook':
      return { type: 'webhook', ...presentWebhook(exported.webhook) }
    case 'application':
      return { type: 'application', ...presentApplication(exported.application) }
    case 'vault':
      return { type: 'vault', vault: exported.number, ...presentVault(exported.vault) }
    case 'memory':
      return { type: 'memory', vault: exported.number, ...exported.memory }
    case 'file':
      return { type: 'file', vault: exported.number, ...exported.file }
    case 'trace':
      return { type: 'trace', vault: exported.number, ...presentStoredTrace(exported.trace) }
    case 'account_event': {
      const { account, event } = exported
      return {
        type: 'account_event',
        account_id: account,
        ...presentAccountEvent(event),
        created_at_us: event.micros,
      }
    }
    default:
      return presentOrgExportLine(exported)
  }
}

/**
 * The lines as they are, and a last one that tells how many they were: without it a file is not the
 * whole.
 */
export async function* appendEndLine(lines: AsyncIterable<TypedLine>): AsyncGenerator<TypedLine> {
  const counts: Record<string, number> = {}
  let all = 0
  for await (const line of lines) {
    counts[line.type] = (counts[line.type] ?? 0) + 1
    all++
    yield line
  }
  yield { type: 'end', lines: all, counts }
}

const presentVault = ({ createdAt, externalId, keys }: AccountVault) => ({
  created_at: createdAt.toISOString(),
  external_id: externalId,
  keys: keys.map(({ masked, name, createdAt, expiresAt, revokedAt }) => ({
    masked_key: masked,
    name,
    created_at: toIsoOrNull(createdAt),
    expires_at: toIsoOrNull(expiresAt),
    revoked_at: toIsoOrNull(revokedAt),
  })),
})

const toIsoOrNull = (text: string | null): string | null =>
  text === null ? null : new Date(text).toISOString()

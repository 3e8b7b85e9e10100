import { policyOfAccount, type AccountPolicy } from '#shared/accounts/policy.ts'
import { exportedLines } from '#shared/vault/bulk/export.ts'
import type { ExportedLine } from '#shared/domain/file-lines.ts'
import { chained } from '#shared/core/hash-chain.ts'
import { exportedOrg, type OrgExported } from '#shared/org/export.ts'
import { eventHead, eventLinks, type AccountEvent } from '#shared/audit/account-events.postgres.ts'
import {
  findAccount,
  ownVaults,
  type AccountRow,
  type OwnVault,
} from '#shared/accounts/export.postgres.ts'
import { listOrgs } from '#shared/org/orgs.postgres.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import { listWebhooks, type WebhookRow } from '#shared/webhooks/webhooks.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** One thing that is kept of an account. Vaults are told apart by their number in the file. */
export type Exported =
  | OrgExported
  | { type: 'account'; account: AccountRow }
  | { type: 'account_policy'; policy: AccountPolicy }
  | { type: 'provider_key'; key: ProviderKeyRow }
  | { type: 'webhook'; webhook: WebhookRow }
  | { type: 'vault'; number: number; vault: OwnVault }
  | { type: 'memory'; number: number; memory: ExportedLine }
  | { type: 'account_event'; account: string; event: AccountEvent }

/**
 * Everything that is kept of an account, a thing at a time: what it is, its vaults with their memories,
 * its organizations with what they share, what was done to it. Private vaults of members are theirs and
 * not in it; secrets are masked.
 *
 * @throws Refusal `conflict` when a vault is cleared or an organization removed meanwhile; `unavailable`
 *   when a store is out of reach.
 */
export async function* exportedAccount(backend: Stores, id: string): AsyncGenerator<Exported> {
  const { query } = backend.postgres
  const account = await findAccount(query, id)
  if (!account) return
  yield { type: 'account', account }
  yield { type: 'account_policy', policy: await policyOfAccount(query, id) }
  for (const key of await listProviderKeys(query, id)) yield { type: 'provider_key', key }
  for (const webhook of await listWebhooks(query, id)) yield { type: 'webhook', webhook }
  for (const [index, vault] of (await ownVaults(query, id)).entries()) {
    const number = index + 1
    yield { type: 'vault', number, vault }
    const everything = { session: undefined, embedder: undefined }
    for await (const memory of exportedLines(backend, vault, everything)) {
      yield { type: 'memory', number, memory }
    }
  }
  for (const org of await listOrgs(query, id)) yield* exportedOrg(backend, org)
  const { position: end } = await eventHead(query, id)
  for await (const event of chained<AccountEvent>(page => eventLinks(query, id, page), end)) {
    yield { type: 'account_event', account: id, event }
  }
}

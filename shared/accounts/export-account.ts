import { readAccountPolicy, type AccountPolicy } from '#shared/accounts/policy.ts'
import { exportMemories } from '#shared/vault/bulk/export-memories.mongo.ts'
import { listKeptFiles, readKeptBytes } from '#shared/vault/bulk/kept-files.postgres.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { readPages } from '#shared/core/hash-chain.ts'
import { exportOrgItems, type OrgExportItem } from '#shared/org/trail/export-organization.ts'
import {
  accountChainHead,
  accountChainEntries,
  type AccountEvent,
} from '#shared/events/account-events.postgres.ts'
import {
  findAccount,
  listAccountVaults,
  type AccountRow,
  type AccountVault,
} from '#shared/accounts/export.postgres.ts'
import { listOrgs } from '#shared/org/base/orgs.postgres.ts'
import { listApplications, type Application } from '#shared/access/applications.postgres.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import { listAllCallTraces } from '#shared/vault/read/traces/read-trace.ts'
import type { StoredCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import { listWebhooks } from '#shared/events/webhooks/webhook.ts'
import type { WebhookRow } from '#shared/events/webhooks/webhooks.postgres.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** One line of an account's export. A vault is identified by its number in the file. */
export type AccountExportItem =
  | OrgExportItem
  | { type: 'account'; account: AccountRow }
  | { type: 'account_policy'; policy: AccountPolicy }
  | { type: 'provider_key'; key: ProviderKeyRow }
  | { type: 'webhook'; webhook: WebhookRow }
  | { type: 'application'; application: Application }
  | { type: 'vault'; number: number; vault: AccountVault }
  | { type: 'memory'; number: number; memory: ExportedLine }
  | { type: 'file'; number: number; file: object }
  | { type: 'trace'; number: number; trace: StoredCallTrace }
  | { type: 'account_event'; account: string; event: AccountEvent }

/**
 * Everything stored of an account, one item at a time: its settings, its vaults with their memories and
 * the traces of their model calls, its organizations with their shared memories, its events. Private vaults of
 * members are left out; secrets are masked. Some items may be there
 * of a vault that is cleared or an organization that is removed during it; the rest of the account follows.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function* exportAccountItems(
  backend: Stores & { seal: Seal },
  id: string,
): AsyncGenerator<AccountExportItem> {
  const { query } = backend.postgres
  const account = await findAccount(query, id)
  if (!account) return
  yield { type: 'account', account }
  const policy = await readAccountPolicy(query, id)
  yield { type: 'account_policy', policy }
  for (const key of await listProviderKeys(query, id)) yield { type: 'provider_key', key }
  for (const webhook of await listWebhooks(backend, id)) yield { type: 'webhook', webhook }
  const all = { after: undefined, limit: null }
  for (const application of await listApplications(query, { account: id }, all)) {
    yield { type: 'application', application }
  }
  for (const [index, vault] of (await listAccountVaults(query, id)).entries()) {
    const number = index + 1
    yield { type: 'vault', number, vault }
    const everything = { session: undefined, embedder: undefined }
    for await (const memory of whileStored(exportMemories(backend, vault, everything))) {
      yield { type: 'memory', number, memory }
    }
    for (const { id, fileId, name, size } of await listKeptFiles(query, vault.vault)) {
      const file = { file_id: fileId, name, bytes: size }
      for await (const part of readKeptBytes(query, { ...vault, id }))
        yield { type: 'file', number, file: { ...file, content: part.toString('base64') } }
    }
    for await (const trace of listAllCallTraces(query, vault.vault, policy.traces)) {
      yield { type: 'trace', number, trace }
    }
  }
  for (const org of await listOrgs(query, id)) yield* whileStored(exportOrgItems(backend, org))
  const { position: end } = await accountChainHead(query, id)
  for await (const event of readPages<AccountEvent>(
    page => accountChainEntries(query, id, page),
    end,
  )) {
    yield { type: 'account_event', account: id, event }
  }
}

const goneReasons: ReadonlySet<RefusalReason> = new Set(['conflict', 'missing'])

/**
 * The items of a vault or an organization, which ends where it is cleared or removed: nothing of it is stored then. Of
 * an account with a thousand vaults hardly an export would come to its end, if one clearing broke it.
 */
async function* whileStored<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items
  } catch (error) {
    if (!(error instanceof Refusal && goneReasons.has(error.reason))) throw error
  }
}

import type { Backend } from '#shared/backend.ts'
import { exportedLines } from '#shared/bulk/export.ts'
import type { ExportedLine } from '#shared/bulk/file.ts'
import { sharedPage, type SharedPosition } from '#shared/mongo/shared-lists.ts'
import type { SharedMemory } from '#shared/mongo/shared-memories.ts'
import {
  findAccount,
  ownVaults,
  type AccountRow,
  type OwnVault,
} from '#shared/postgres/account-export.ts'
import { readInstructions, type InstructionsRow } from '#shared/postgres/instructions.ts'
import { listOrgs, type OrgRow } from '#shared/postgres/orgs.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/postgres/provider-keys.ts'
import { listRoles, type RoleRow } from '#shared/postgres/roles.ts'
import { listTags, type TagRow } from '#shared/postgres/tags.ts'
import { listUsers, type UserRow } from '#shared/postgres/users.ts'
import { listWebhooks, type WebhookRow } from '#shared/postgres/webhooks.ts'

/** One thing that is kept of an account. Vaults are told apart by their number in the file. */
export type Exported =
  | { type: 'account'; account: AccountRow }
  | { type: 'provider_key'; key: ProviderKeyRow }
  | { type: 'webhook'; webhook: WebhookRow }
  | { type: 'vault'; number: number; vault: OwnVault }
  | { type: 'memory'; number: number; memory: ExportedLine }
  | {
      type: 'organization'
      org: OrgRow
      instructions: InstructionsRow
      roles: RoleRow[]
      tags: TagRow[]
      users: UserRow[]
    }
  | { type: 'shared_memory'; org: string; roles: RoleRow[]; memory: SharedMemory }

const pageMax = 500

/**
 * Everything that is kept of an account, a thing at a time: what it is, its vaults with their memories,
 * its organizations with what they share. Private vaults of members are theirs and not in it; secrets
 * are masked.
 *
 * @throws Refusal `conflict` when a vault is cleared meanwhile; `unavailable` when a store is out of reach.
 */
export async function* exportedAccount(
  backend: Pick<Backend, 'postgres' | 'mongo'>,
  id: string,
): AsyncGenerator<Exported> {
  const { query } = backend.postgres
  const account = await findAccount(query, id)
  if (!account) return
  yield { type: 'account', account }
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
}

async function* exportedOrg(
  { postgres: { query }, mongo }: Pick<Backend, 'postgres' | 'mongo'>,
  org: OrgRow,
): AsyncGenerator<Exported> {
  const [roles, tags, users, instructions] = await Promise.all([
    listRoles(query, org.id),
    listTags(query, org.id),
    listUsers(query, org.id),
    readInstructions(query, org.id),
  ])
  yield { type: 'organization', org, instructions, roles, tags, users }
  const all = { tag: undefined, author: undefined, reviewed: undefined, count: pageMax }
  for (let after: SharedPosition | undefined; ;) {
    const page: SharedMemory[] = await sharedPage(mongo, org, { ...all, after })
    for (const memory of page) yield { type: 'shared_memory', org: org.id, roles, memory }
    const last = page.at(-1)
    if (!last || page.length < pageMax) return
    after = [last.acquiredAt, last.id]
  }
}

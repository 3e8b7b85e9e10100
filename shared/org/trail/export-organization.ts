import { readPages } from '#shared/core/hash-chain.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { exportedShared, type ExportedShared } from '#shared/org/memories/shared-lists.mongo.ts'
import {
  auditChainHead,
  auditChainEntries,
  type AuditChainEntry,
} from '#shared/org/trail/audit-chain.postgres.ts'
import {
  groupRows,
  readDirectorySettings,
  type DirectorySettings,
  type GroupRow,
} from '#shared/org/base/groups.postgres.ts'
import { readInstructions, type InstructionsRow } from '#shared/org/base/org-policy.postgres.ts'
import { findOrg, type OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { roleRows, type RoleRow } from '#shared/org/base/roles.postgres.ts'
import { listTags, type TagRow } from '#shared/org/base/tags.postgres.ts'
import { toSensitivityRules, type SensitivityRules } from '#shared/org/base/sensitivity-rules.ts'
import {
  statementsAfter,
  type ExportedStatement,
} from '#shared/org/memories/shared-statements.postgres.ts'
import {
  orgKeysAfter,
  userRows,
  type OrgKeyRow,
  type UserRow,
} from '#shared/org/base/users.postgres.ts'
import { effectiveOrgPolicy } from '#shared/org/base/redaction.ts'
import type { EffectivePolicy } from '#shared/privacy/apply-redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'

export type OrgExportItem = { org: string } & (
  | { type: 'organization'; row: OrgRow }
  | { type: 'instructions'; instructions: InstructionsRow }
  | { type: 'policy'; policy: EffectivePolicy }
  | { type: 'role'; role: RoleRow }
  | { type: 'tag'; tag: TagRow }
  | { type: 'user'; user: UserRow }
  | { type: 'member_key'; key: OrgKeyRow }
  | { type: 'directory'; settings: DirectorySettings }
  | { type: 'group'; group: GroupRow }
  | {
      type: 'shared_memory'
      rules: SensitivityRules
      memory: ExportedShared
      model: string | undefined
    }
  | { type: 'shared_statement'; statement: ExportedStatement }
  | { type: 'audit_event'; event: AuditChainEntry }
)

const pageMax = 500

/**
 * Exports everything stored of an organization, one item at a time; secrets are masked. Each item that exists
 * during the whole export is in it once. The audit ends where it ended after the memories were read.
 *
 * @param embedder whose vectors are included
 * @throws Refusal `conflict` when the organization is removed meanwhile; `unavailable` when a store is out of
 *   reach.
 */
export async function* exportOrgItems(
  { postgres: { query }, mongo }: Stores,
  row: OrgRow,
  embedder?: Embedder,
): AsyncGenerator<OrgExportItem> {
  const org = row.id
  yield { type: 'organization', org, row }
  yield { type: 'instructions', org, instructions: await readInstructions(query, org) }
  yield { type: 'policy', org, policy: await effectiveOrgPolicy(query, org) }
  const roles = await roleRows.list(query, org)
  for (const role of roles) yield { type: 'role', org, role }
  const tags = await listTags(query, org)
  for (const tag of tags) yield { type: 'tag', org, tag }
  for await (const user of readRowsById(page => userRows.page(query, org, page))) {
    yield { type: 'user', org, user }
  }
  for await (const key of readRowsById(page => orgKeysAfter(query, org, page))) {
    yield { type: 'member_key', org, key }
  }
  yield { type: 'directory', org, settings: await readDirectorySettings(query, org) }
  for await (const group of readRowsById(page => groupRows.page(query, org, page))) {
    yield { type: 'group', org, group }
  }
  const rules = toSensitivityRules(org, roles, tags)
  for await (const memory of exportedShared(mongo, row, embedder?.space)) {
    yield { type: 'shared_memory', org, rules, memory, model: embedder?.model }
  }
  for await (const statement of readRowsById(page => statementsAfter(query, org, page))) {
    yield { type: 'shared_statement', org, statement }
  }
  const { position: end } = await auditChainHead(query, org)
  for await (const event of readPages<AuditChainEntry>(
    page => auditChainEntries(query, org, page),
    end,
  )) {
    yield { type: 'audit_event', org, event }
  }
  const now = await findOrg(query, row.account, org)
  if (now?.epoch !== row.epoch) {
    throw new Refusal('conflict', 'The organization was removed while it was read')
  }
}

/** Reads rows page by page, in the order of their ids. */
async function* readRowsById<Row extends { id: string }>(
  read: (page: { after: string | null; limit: number }) => Promise<Row[]>,
): AsyncGenerator<Row> {
  for (let after: string | null = null; ;) {
    const rows: Row[] = await read({ after, limit: pageMax })
    yield* rows
    if (rows.length < pageMax) return
    after = rows.at(-1)!.id
  }
}

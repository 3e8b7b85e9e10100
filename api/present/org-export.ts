import { microsToMs, presentPolicy, type TypedLine } from '#api/present/account.ts'
import {
  presentDirectorySettings,
  presentInstructions,
  presentListedUser,
  presentOrg,
  presentRole,
  presentTag,
} from '#api/present/org.ts'
import { presentSharedMemory } from '#api/present/shared-memory.ts'
import { roundVector } from '#shared/vault/bulk/export-memories.mongo.ts'
import type { OrgExportItem } from '#shared/org/trail/export-organization.ts'
import type { AuditChainEntry } from '#shared/org/trail/audit-chain.postgres.ts'
import type { GroupRow } from '#shared/org/base/groups.postgres.ts'
import type { OrgKeyRow } from '#shared/org/base/users.postgres.ts'
import type { ExportedStatement } from '#shared/org/memories/shared-statements.postgres.ts'

type RecordOfType<Type extends OrgExportItem['type']> = Extract<OrgExportItem, { type: Type }>

/** A line of the export of an organization. */
export const presentOrgExportLine = (exported: OrgExportItem): TypedLine => ({
  type: exported.type,
  org_id: exported.org,
  ...presentFields(exported),
})

function presentFields(exported: OrgExportItem): object {
  switch (exported.type) {
    case 'organization':
      return presentOrg(exported.row)
    case 'instructions':
      return presentInstructions(exported.instructions)
    case 'policy':
      return presentPolicy(exported.policy)
    case 'role':
      return presentRole(exported.role)
    case 'tag':
      return presentTag(exported.tag)
    case 'user':
      return presentListedUser(exported.user)
    case 'member_key':
      return presentOrgKey(exported.key)
    case 'directory':
      return presentDirectorySettings(exported.settings)
    case 'group':
      return presentExportedGroup(exported.group)
    case 'shared_memory':
      return presentExportedSharedMemory(exported)
    case 'shared_statement':
      return presentExportedStatement(exported.statement)
    case 'audit_event':
      return presentAuditLink(exported.event)
  }
}

const presentOrgKey = (key: OrgKeyRow) => ({
  id: key.id,
  kind: key.user === null ? 'organization' : key.kind,
  user_id: key.user,
  team_member_id: key.teamMemberId,
  masked_key: key.masked,
  created_at: key.createdAt.getTime(),
  active: key.revokedAt === null,
  revoked_at: key.revokedAt?.getTime() ?? null,
  last_used_at: key.lastUsedAt?.getTime() ?? null,
})

const presentExportedGroup = ({ id, name, externalId, members }: GroupRow) => ({
  group_id: id,
  name,
  external_id: externalId,
  user_ids: members.map(member => member.id),
})

const presentExportedSharedMemory = ({ rules, memory, model }: RecordOfType<'shared_memory'>) => ({
  ...presentSharedMemory(memory, rules),
  operation_id: memory.operation,
  ...(memory.vector && model && { vector: { model, values: roundVector(memory.vector) } }),
})

const presentExportedStatement = (statement: ExportedStatement) => ({
  statement_id: statement.id,
  user_id: statement.user,
  author: statement.author,
  turn_id: statement.turn,
  mem_id: statement.memory,
  action: statement.action,
  outdated: statement.outdated,
  text: statement.text,
  said_at: statement.saidAt.getTime(),
  recorded_at: statement.recordedAt.getTime(),
})

/** Everything its hash is made of, and the hash. */
const presentAuditLink = (event: AuditChainEntry) => ({
  position: event.position,
  event_id: event.id,
  action: event.action,
  actor: event.actor,
  mem_id: event.memory,
  write_id: event.write,
  created_at: microsToMs(event.micros),
  created_at_us: event.micros,
  hash: event.hash.toString('hex'),
})

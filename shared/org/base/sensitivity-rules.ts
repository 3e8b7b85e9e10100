import type { Query } from '#shared/storage/postgres/connect.ts'
import { roleRows, type RoleRow } from '#shared/org/base/roles.postgres.ts'
import { listTags, type TagRow } from '#shared/org/base/tags.postgres.ts'

/** The labels that each role of an organization allows, by which memories are sensitive. */
export type SensitivityRules = { org: string; roles: readonly (readonly string[])[] }

export async function readSensitivityRules(query: Query, org: string): Promise<SensitivityRules> {
  const [roles, tags] = await Promise.all([roleRows.list(query, org), listTags(query, org)])
  return toSensitivityRules(org, roles, tags)
}

export function toSensitivityRules(
  org: string,
  roles: readonly RoleRow[],
  tags: readonly TagRow[],
): SensitivityRules {
  // A role that allows a tag also allows its former labels, which memories may still bear.
  const former = new Map(tags.map(tag => [tag.label, tag.former]))
  return {
    org,
    roles: roles.map(({ allowedTags }) =>
      allowedTags.flatMap(label => [label, ...(former.get(label) ?? [])]),
    ),
  }
}

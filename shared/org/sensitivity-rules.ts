import type { Query } from '#shared/storage/postgres/connect.ts'
import { listRoles } from '#shared/org/roles.postgres.ts'
import { listTags } from '#shared/org/tags.postgres.ts'

/** What decides how sensitive a shared memory is: the labels that each role of the organization allows. */
export type SensitivityRules = { org: string; roles: readonly (readonly string[])[] }

export async function readSensitivityRules(query: Query, org: string): Promise<SensitivityRules> {
  const [roles, tags] = await Promise.all([listRoles(query, org), listTags(query, org)])
  // A role that allows a tag also allows its former labels, which memories may still bear.
  const former = new Map(tags.map(tag => [tag.label, tag.former]))
  return {
    org,
    roles: roles.map(({ allowedTags }) =>
      allowedTags.flatMap(label => [label, ...(former.get(label) ?? [])]),
    ),
  }
}

import type { ProfileRow } from '#shared/vault/read/prepare/read-profile.ts'

/** A row of a profile. */
export const presentProfileEntry = ({
  kind,
  quote,
  memory,
  since,
  until,
  replacedBy,
  source,
  speaker,
  tags,
  author,
}: ProfileRow) => ({
  kind,
  quote,
  memory_id: memory,
  since: new Date(since).toISOString(),
  until: until === null ? null : new Date(until).toISOString(),
  replaced_by: replacedBy,
  source,
  ...(speaker !== undefined && author === undefined && { name: speaker }),
  ...(tags !== undefined && { tags }),
  ...(author !== undefined && { author }),
})

import type { Query } from '#shared/storage/postgres/connect.ts'

/** The fields of an audit event that its hash covers. */
export type AuditChainEntry = {
  position: number
  hash: Buffer
  id: string
  memory: string
  action: string
  write: string
  /** Microseconds since 1970, as digits: more than a number holds. */
  micros: string
  actor: string
}

/** The end of an organization's chain; position 0 when it has no events. */
export async function auditChainHead(
  query: Query,
  org: string,
): Promise<{ position: number; hash: Buffer }> {
  const { rows } = await query<{ position: number; hash: Buffer }>(
    'select position::float8 as position, hash from audit_heads where org = $1',
    [org],
  )
  return rows[0] ?? { position: 0, hash: Buffer.alloc(0) }
}

/** Events after a position, in their order. */
export async function auditChainEntries(
  query: Query,
  org: string,
  { after, limit }: { after: number; limit: number },
): Promise<AuditChainEntry[]> {
  const { rows } = await query<AuditChainEntry>(
    `select position::float8 as position, hash, id, memory, action, write, actor,
            floor(extract(epoch from created_at) * 1000000)::bigint::text as micros
     from audit_events where org = $1 and position > $2 order by position limit $3`,
    [org, after, limit],
  )
  return rows
}

/** Organizations after an id, in the order of their ids. */
export async function listOrgIds(
  query: Query,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    'select id from orgs where $1::uuid is null or id > $1 order by id limit $2',
    [after, limit],
  )
  return rows.map(({ id }) => id)
}

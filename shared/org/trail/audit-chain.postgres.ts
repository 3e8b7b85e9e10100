import type { Query } from '#shared/storage/postgres/connect.ts'
import { verifyChain, type ChainEntry, type ChainVerification } from '#shared/core/hash-chain.ts'

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

/** Reads the end of an organization's chain; position 0 when it has no events. */
export async function auditChainHead(
  query: Query,
  org: string,
): Promise<{ position: number; hash: Buffer }> {
  const { rows } = await query<{ position: number; hash: Buffer }>(
    'select position, hash from audit_heads where org = $1',
    [org],
  )
  return rows[0] ?? { position: 0, hash: Buffer.alloc(0) }
}

/** Lists events after a position, in their order. */
export async function auditChainEntries(
  query: Query,
  org: string,
  { after, limit }: { after: number; limit: number },
): Promise<AuditChainEntry[]> {
  const { rows } = await query<AuditChainEntry>(
    `select position, hash, id, memory, action, write, actor,
            floor(extract(epoch from created_at) * 1000000)::bigint::text as micros
     from audit_events where org = $1 and position > $2 order by position limit $3`,
    [org, after, limit],
  )
  return rows
}

/** Lists organizations after an id, in the order of their ids. */
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

/**
 * Recomputes the hash chain of an organization's audit.
 *
 * @param anchors ends of this chain at earlier checks, stored elsewhere: they prove that the events up to there are
 *   unchanged
 * @returns the end of the chain, or the first event where it is broken.
 */
export async function verifyAuditChain(
  query: Query,
  org: string,
  anchors: readonly { org?: string; position: number; hash: string }[] = [],
): Promise<ChainVerification & { org: string }> {
  const head = () => auditChainHead(query, org)
  const read = async (page: { after: number; limit: number }) =>
    (await auditChainEntries(query, org, page)).map(toAuditChainEntry)
  return { org, ...(await verifyChain({ owner: org, read, head, anchors })) }
}

/** The fields of an event that its hash covers. */
export const toAuditChainEntry = (event: AuditChainEntry): ChainEntry => {
  const { position, hash, id, memory, action, write, micros, actor } = event
  return { position, hash, id, payload: [memory, action, write, micros, actor] }
}

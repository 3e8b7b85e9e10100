import { chained, walkChain, type Link, type WalkedChain } from '#shared/core/hash-chain.ts'
import { auditHead, auditLinks, type AuditLink } from '#shared/org/audit-chain.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type CheckedChain = WalkedChain & { org: string }

/**
 * Counts the hashes of an organization's audit anew.
 *
 * @param anchors where the chain of this organization ended at earlier checks: kept elsewhere, they show
 *   that everything up to there is as it was
 * @returns the end of the chain, or the first event where it is broken.
 */
export async function checkChain(
  query: Query,
  org: string,
  anchors: readonly { org?: string; position: number; hash: string }[] = [],
): Promise<CheckedChain> {
  const head = () => auditHead(query, org)
  const rows = chained<AuditLink>(page => auditLinks(query, org, page))
  return { org, ...(await walkChain({ owner: org, rows, linkOf: auditLinkOf, head, anchors })) }
}

/** An event as its hash is made of it. */
export const auditLinkOf = (event: AuditLink): Link => {
  const { position, hash, id, memory, action, write, micros, actor } = event
  return { position, hash, id, said: [memory, action, write, micros, actor] }
}

import {
  readPages,
  verifyChain,
  type ChainEntry,
  type ChainVerification,
} from '#shared/core/hash-chain.ts'
import {
  auditChainHead,
  auditChainEntries,
  type AuditChainEntry,
} from '#shared/org/trail/audit-chain.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type AuditChainResult = ChainVerification & { org: string }

/**
 * Recomputes the hash chain of an organization's audit.
 *
 * @param anchors where the chain of this organization ended at earlier checks: stored elsewhere, they
 *   prove that the events up to there are unchanged
 * @returns the end of the chain, or the first event where it is broken.
 */
export async function verifyAuditChain(
  query: Query,
  org: string,
  anchors: readonly { org?: string; position: number; hash: string }[] = [],
): Promise<AuditChainResult> {
  const head = () => auditChainHead(query, org)
  const rows = readPages<AuditChainEntry>(page => auditChainEntries(query, org, page))
  return {
    org,
    ...(await verifyChain({ owner: org, rows, linkOf: toAuditChainEntry, head, anchors })),
  }
}

/** The fields of an event that its hash covers. */
export const toAuditChainEntry = (event: AuditChainEntry): ChainEntry => {
  const { position, hash, id, memory, action, write, micros, actor } = event
  return { position, hash, id, payload: [memory, action, write, micros, actor] }
}

import { createHash } from 'node:crypto'
import { auditHead, auditLinks, type AuditLink } from '#shared/postgres/audit-chain.ts'
import type { Query } from '#shared/postgres/connect.ts'

/** Where a chain ends: kept elsewhere, it shows later that everything up to there is as it was. */
export type Anchor = { org: string; position: number; hash: string }

/** What is wrong with a chain, and with which event; `id` is null for one that is not there. */
type BrokenLink = {
  position: number
  id: string | null
  fault: 'changed' | 'missing' | 'not the one it was'
}

export type CheckedChain = Anchor & { broken: BrokenLink | null }

const pageMax = 5_000

/**
 * Counts the hashes of an organization's audit anew.
 *
 * @param anchors of this organization, from earlier checks
 * @returns the end of the chain, or the first event where it is broken.
 */
export async function checkChain(
  query: Query,
  org: string,
  anchors: readonly Anchor[] = [],
): Promise<CheckedChain> {
  const head = await auditHead(query, org)
  const expected = new Map(anchors.map(({ position, hash }) => [position, hash]))
  let position = 0
  let hash: Buffer = Buffer.alloc(0)
  const ended = (broken: BrokenLink | null): CheckedChain => ({
    org,
    position,
    hash: hash.toString('hex'),
    broken,
  })
  for (;;) {
    const links = await auditLinks(query, org, { after: position, limit: pageMax })
    for (const link of links) {
      if (link.position !== position + 1) return ended(missing(position + 1))
      const next = hashOf(hash, org, link)
      if (!next.equals(link.hash)) return ended({ ...brokenAt(link), fault: 'changed' })
      hash = next
      position = link.position
      const anchor = expected.get(position)
      if (anchor !== undefined && anchor !== hash.toString('hex')) {
        return ended({ ...brokenAt(link), fault: 'not the one it was' })
      }
    }
    if (links.length < pageMax) break
  }
  const furthest = Math.max(head.position, ...expected.keys())
  if (position < furthest) return ended(missing(position + 1))
  const isEnd = head.position === position && head.hash.equals(hash)
  return ended(isEnd ? null : { position, id: null, fault: 'not the one it was' })
}

const missing = (position: number): BrokenLink => ({ position, id: null, fault: 'missing' })

const brokenAt = ({ position, id }: AuditLink) => ({ position, id })

/** As the database counts it: see migration 0022. The actor comes last, since it may hold anything. */
function hashOf(before: Buffer, org: string, link: AuditLink): Buffer {
  const { position, id, memory, action, write, micros, actor } = link
  return createHash('sha256')
    .update(before)
    .update([position, org, id, memory, action, write, micros, actor].join('\n'))
    .digest()
}

import { createHash } from 'node:crypto'

/** One event of a chain. Its hash covers the event and the hash before it. */
export type ChainEntry = {
  /** From 1, without a gap. */
  position: number
  hash: Buffer
  id: string
  /**
   * All other fields that the hash covers, in order; a field that may hold a line break is last.
   */
  payload: readonly string[]
}

/** The last event of a chain; position 0 and an empty hash when the chain is empty. */
export type ChainHead = { position: number; hash: Buffer }

/** The first fault of a chain; `id` is null for an event that is missing. */
type BrokenEntry = {
  position: number
  id: string | null
  fault: 'changed' | 'missing' | 'not the one it was'
}

/** The last valid event, and the first that is not valid. */
export type ChainVerification = { position: number; hash: string; broken: BrokenEntry | null }

/** Hashes of some positions as an earlier reader recorded them, in hex. */
type KnownHashes = readonly { position: number; hash: string }[]

type ChainVerifier = {
  /**
   * Checks the next event. @returns false once the chain is broken; later events are not checked.
   */
  verify(link: ChainEntry): boolean
  result(): ChainVerification
}

/**
 * Recomputes the hashes of a chain, event by event, up to the first that differs.
 *
 * @param owner whose chain it is; part of every hash
 */
export function createChainVerifier(owner: string, anchors: KnownHashes = []): ChainVerifier {
  const expected = Map.groupBy(anchors, ({ position }) => position)
  let position = 0
  let hash: Buffer = Buffer.alloc(0)
  let broken: BrokenEntry | null = null

  return {
    verify(link) {
      if (broken) return false
      const next = entryHash(hash, owner, link)
      if (link.position !== position + 1) broken = missingEntry(position + 1)
      else if (!next.equals(link.hash)) broken = { ...identifyEntry(link), fault: 'changed' }
      if (broken) return false
      hash = next
      position = link.position
      const currentHash = hash.toString('hex')
      if (expected.get(position)?.some(anchor => anchor.hash !== currentHash)) {
        broken = { ...identifyEntry(link), fault: 'not the one it was' }
      }
      return broken === null
    },
    result() {
      if (!broken && position < Math.max(0, ...expected.keys())) broken = missingEntry(position + 1)
      return { position, hash: hash.toString('hex'), broken }
    },
  }
}

/**
 * Verifies a chain of the database.
 *
 * @param head reads the current end of the chain
 */
export async function verifyChain<Row>({
  owner,
  rows,
  linkOf,
  head,
  anchors = [],
}: {
  owner: string
  rows: AsyncIterable<Row>
  linkOf: (row: Row) => ChainEntry
  head: () => Promise<ChainHead>
  anchors?: KnownHashes
}): Promise<ChainVerification> {
  const before = await head()
  const known = { position: before.position, hash: before.hash.toString('hex') }
  const verifier = createChainVerifier(owner, [...anchors, known])
  for await (const row of rows) if (!verifier.verify(linkOf(row))) break
  const verification = verifier.result()
  const { position, broken } = verification
  // Events that were added during the walk have moved the head.
  if (broken || before.position === position || (await head()).position >= position)
    return verification
  return { ...verification, broken: { position, id: null, fault: 'not the one it was' } }
}

const pageMax = 2_000

/**
 * The rows of a chain from its beginning, read page by page.
 *
 * @param end the last position to read; without it, rows that are added during the walk are read
 *   too
 */
export async function* readPages<Row extends { position: number }>(
  read: (page: { after: number; limit: number }) => Promise<Row[]>,
  end = Infinity,
): AsyncGenerator<Row> {
  for (let after = 0; after < end;) {
    const limit = Math.min(pageMax, end - after)
    const rows = await read({ after, limit })
    yield* rows
    if (rows.length < limit) return
    after = rows.at(-1)!.position
  }
}

const missingEntry = (position: number): BrokenEntry => ({ position, id: null, fault: 'missing' })

const identifyEntry = ({ position, id }: ChainEntry) => ({ position, id })

/** The same hash as the database computes: `chain_account_event` and `chain_audit_event`. */
const entryHash = (before: Buffer, owner: string, { position, id, payload }: ChainEntry): Buffer =>
  createHash('sha256')
    .update(before)
    .update([position, owner, id, ...payload].join('\n'))
    .digest()

import { createHash } from 'node:crypto'

/** One event of a chain: each carries a hash over itself and the event before. */
export type ChainEntry = {
  /** From 1, without a gap. */
  position: number
  hash: Buffer
  id: string
  /** Everything else that the hash is made of, in its order; what may hold a line break comes last. */
  payload: readonly string[]
}

/** Where a chain ends; at position 0, with no hash, when nothing has happened. */
export type ChainHead = { position: number; hash: Buffer }

/** What is wrong with a chain, and with which event; `id` is null for one that is not there. */
type BrokenEntry = {
  position: number
  id: string | null
  fault: 'changed' | 'missing' | 'not the one it was'
}

/** The last event that is what it was, and the first that is not. */
export type ChainVerification = { position: number; hash: string; broken: BrokenEntry | null }

/** What stood at some positions when somebody looked before, in hexadecimal digits. */
type KnownHashes = readonly { position: number; hash: string }[]

type ChainVerifier = {
  /** Takes the next link. @returns false once the chain is broken: what follows is not looked at. */
  verify(link: ChainEntry): boolean
  result(): ChainVerification
}

/**
 * Counts the hashes of a chain anew, link by link, up to the first that is not what it was.
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
 * Counts the hashes of a chain that stands in the database.
 *
 * @param head tells where the chain ends at this moment
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
  // What came in meanwhile has moved the head along.
  if (broken || before.position === position || (await head()).position >= position)
    return verification
  return { ...verification, broken: { position, id: null, fault: 'not the one it was' } }
}

const pageMax = 2_000

/**
 * The rows of a chain from its beginning, read page by page.
 *
 * @param end where it ended when somebody looked: rows that come in meanwhile are left out; without it
 *   they are followed until there is no more
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

/** As the database counts it: see migrations 0022 and 0024. */
const entryHash = (before: Buffer, owner: string, { position, id, payload }: ChainEntry): Buffer =>
  createHash('sha256')
    .update(before)
    .update([position, owner, id, ...payload].join('\n'))
    .digest()

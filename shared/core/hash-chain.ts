import { createHash } from 'node:crypto'

/** An event whose hash covers the event and the hash before it. */
export type ChainEntry = {
  /** From 1, without a gap. */
  position: number
  hash: Buffer
  id: string
  /** All other fields that the hash covers, in order; a field that may hold a line break is last. */
  payload: readonly string[]
}

/** The first fault of a chain; `id` is null for an event that is missing. */
type BrokenEntry = {
  position: number
  id: string | null
  fault: 'changed' | 'missing' | 'not the one it was'
}

/** The last valid event, and the first that is not valid. */
export type ChainVerification = { position: number; hash: string; broken: BrokenEntry | null }

/** Recomputes the hashes of a chain, event by event, up to the first that differs. */
export class ChainVerifier {
  readonly #owner: string
  readonly #expected: Map<number, { hash: string }[]>
  #position = 0
  #hash: Buffer = Buffer.alloc(0)
  #broken: BrokenEntry | null = null

  /** @param owner part of every hash */
  constructor(owner: string, anchors: readonly { position: number; hash: string }[] = []) {
    this.#owner = owner
    this.#expected = Map.groupBy(anchors, ({ position }) => position)
  }

  /** Checks the next event. @returns false once the chain is broken; later events are not checked. */
  verify(entry: ChainEntry): boolean {
    if (this.#broken) return false
    const { position, id } = entry
    const next = entryHash(this.#hash, this.#owner, entry)
    if (position !== this.#position + 1) this.#broken = missingEntry(this.#position + 1)
    else if (!next.equals(entry.hash)) this.#broken = { position, id, fault: 'changed' }
    if (this.#broken) return false
    this.#hash = next
    this.#position = position
    const hash = next.toString('hex')
    if (this.#expected.get(position)?.some(anchor => anchor.hash !== hash))
      this.#broken = { position, id, fault: 'not the one it was' }
    return this.#broken === null
  }

  result(): ChainVerification {
    const position = this.#position
    if (!this.#broken && position < Math.max(0, ...this.#expected.keys()))
      this.#broken = missingEntry(position + 1)
    return { position, hash: this.#hash.toString('hex'), broken: this.#broken }
  }
}

/** Verifies a chain of the database. @param head reads its current end */
export async function verifyChain({
  owner,
  read,
  head,
  anchors = [],
}: {
  owner: string
  read: (page: { after: number; limit: number }) => Promise<ChainEntry[]>
  /** The last event; position 0 and an empty hash when the chain is empty. */
  head: () => Promise<{ position: number; hash: Buffer }>
  /** Hashes in hex, as an earlier reader recorded them. */
  anchors?: readonly { position: number; hash: string }[]
}): Promise<ChainVerification> {
  const before = await head()
  const known = { position: before.position, hash: before.hash.toString('hex') }
  const verifier = new ChainVerifier(owner, [...anchors, known])
  for await (const entry of readPages(read)) if (!verifier.verify(entry)) break
  const verification = verifier.result()
  const { position, broken } = verification
  // Events that were added during the walk have moved the head.
  if (broken || before.position === position || (await head()).position >= position)
    return verification
  return { ...verification, broken: { position, id: null, fault: 'not the one it was' } }
}

const pageMax = 2_000

/**
 * Reads the rows of a chain from its beginning, page by page.
 *
 * @param end the last position to read; without it, rows that are added meanwhile are read too
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

/** The same hash as the database computes: `chain_account_event` and `chain_audit_event`. */
const entryHash = (before: Buffer, owner: string, { position, id, payload }: ChainEntry): Buffer =>
  createHash('sha256')
    .update(before)
    .update([position, owner, id, ...payload].join('\n'))
    .digest()

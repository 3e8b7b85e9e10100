import { createHash } from 'node:crypto'

/** Lines with the same identity become the same memories. */
export type LineIdentity = {
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  contentHash: Uint8Array
  /** Epoch milliseconds; null for a line without a time. */
  timestamp: number | null
}

/**
 * The id of a chunk of an uploaded line: the same when the line is sent again. It begins with the time of
 * the event (0 before 1970) and the number of the chunk, so that ids sort in the order of the text.
 *
 * @param generation raised while the id belongs to a deleted memory
 */
export function lineMemoryId(
  identity: LineIdentity,
  textChunkIndex: number,
  generation: number,
): string {
  const { vault, epoch, session, sessionEpoch, contentHash, timestamp } = identity
  const line = createHash('sha256')
    .update(JSON.stringify([vault, epoch, session, sessionEpoch, timestamp]))
    .update(contentHash)
    .digest()
  const bytes = Buffer.from(line.subarray(0, 16))
  if (timestamp !== null) bytes.writeUIntBE(Math.max(0, Math.min(timestamp, 2 ** 48 - 1)), 0, 6)
  bytes[6] = 0x70 | ((textChunkIndex >>> 20) & 0x0f)
  bytes[7] = (textChunkIndex >>> 12) & 0xff
  bytes[8] = 0x80 | ((textChunkIndex >>> 6) & 0x3f)
  bytes[9] = ((textChunkIndex & 0x3f) << 2) | (bytes[9]! & 0x03)
  return formatUuidWithTail(
    bytes,
    createHash('sha256').update(line).update(`${textChunkIndex}:${generation}`).digest(),
  )
}

/**
 * The id of an imported memory: its own in generation 0, else one that depends on vault, epoch, id and
 * generation alone. The first 78 bits stay, so that the ids sort like the original ones.
 */
export function importedMemoryId(
  { vault, epoch }: { vault: string; epoch: number },
  id: string,
  generation: number,
): string {
  if (generation === 0) return id.toLowerCase()
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const tail = createHash('sha256').update(bytes).update(`${vault}:${epoch}:${generation}`).digest()
  return formatUuidWithTail(bytes, tail)
}

/** Sets the last 50 bits. */
function formatUuidWithTail(bytes: Buffer, tail: Uint8Array): string {
  bytes[9] = (bytes[9]! & 0xfc) | (tail[0]! & 0x03)
  bytes.set(tail.subarray(1, 7), 10)
  const hex = bytes.toString('hex')
  return [8, 12, 16, 20, 32]
    .map((end, index, ends) => hex.slice(ends[index - 1] ?? 0, end))
    .join('-')
}

import { createHash } from 'node:crypto'

/** What makes the memories of an uploaded line the same as those of an earlier one. */
export type LineIdentity = {
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  contentHash: Uint8Array
  /** Epoch milliseconds; null where the line tells none: such lines are the same by their text. */
  timestamp: number | null
}

/**
 * The id of a piece of an uploaded line: the same whenever the line is sent again. It begins with the
 * time of the event (0 before 1970), then the piece, so that pieces sort in the order they were said.
 *
 * @param generation raised while the id is that of a memory that was deleted
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
 * The id an imported memory takes in a vault when its own is not free: its own in generation 0, then
 * always the same ones. The beginning stays, so that the order of ids is the order of the originals.
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

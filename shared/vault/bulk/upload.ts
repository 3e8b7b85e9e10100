import { createHash } from 'node:crypto'
import type { Placed, UploadedLine } from '#shared/domain/file-lines.ts'
import { lineMemoryId, type LineIdentity } from '#shared/vault/bulk/line-ids.ts'
import type { Item } from '#shared/vault/bulk/plan.ts'
import { askedEnd, endsOf, type Ends } from '#shared/domain/expiry.ts'
import { piecesOf } from '#shared/vault/base/chunks.ts'
import { presentTexts, textAndTimeKey } from '#shared/vault/bulk/memories.mongo.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import type { Chunk } from '#shared/vault/bulk/chunks.postgres.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** What makes two lines of a file the same: their text and their time. */
export const sameUploadKey = ({ content, timestamp }: UploadedLine): string =>
  createHash('sha256').update(contentHash(content)).update(String(timestamp)).digest('base64')

/**
 * The memories of a chunk of an upload, one per line, several where a line is long. A line is the same
 * as what the vault has when text and time are; a line without a time, when its text is that of an
 * earlier line without one.
 */
export async function uploadedItems({ mongo }: { mongo: Mongo }, chunk: Chunk): Promise<Item[]> {
  const place = { session: chunk.session, sessionEpoch: sessionEpochIn(chunk, chunk.session) }
  const lines = chunk.content as Placed<UploadedLine>[]
  const items: (Item & { hash: Buffer; timed: boolean })[] = []
  for (const [index, line] of lines.entries()) {
    const timestamp = line.timestamp === undefined ? null : Math.trunc(line.timestamp)
    const identity: LineIdentity = {
      ...place,
      vault: chunk.vault,
      epoch: chunk.epoch,
      contentHash: contentHash(line.content),
      timestamp,
    }
    const pieces = (await piecesOf(line.content)).filter(({ text }) => text.trim() !== '')
    for (const [piece, { text, tokens }] of pieces.entries()) {
      items.push({
        idAt: generation => lineMemoryId(identity, piece, generation),
        ownFrom: 0,
        present: (line.again ?? false) || isLineOver(line),
        hash: contentHash(text),
        timed: timestamp !== null,
        memory: {
          ...place,
          vault: chunk.vault,
          epoch: chunk.epoch,
          tier: 1,
          role: line.role,
          text,
          at: timestamp ?? momentOf(chunk, index),
          tokens,
          operation: chunk.operation,
          ...endsOfLine(line, chunk),
        },
      })
    }
  }
  const timed = items
    .filter(({ timed, present }) => timed && !present)
    .map(({ hash, memory }) => ({ hash, at: memory.at }))
  const present = await presentTexts(mongo, chunk, place, timed)
  return items.map(({ hash, timed, ...item }) => ({
    ...item,
    present: item.present || (timed && present.has(textAndTimeKey({ hash, at: item.memory.at }))),
  }))
}

/** When the memory of a line is over: what it asks for, and what the retention leads to from now on. */
export const endsOfLine = (
  { expires_at: end }: Pick<UploadedLine, 'expires_at'>,
  { retentionDays: days }: Pick<Chunk, 'retentionDays'>,
): Ends => endsOf({ asked: end === undefined ? null : Date.parse(end), days, storedAt: Date.now() })

/** It has come to its end before it could be stored. */
export const isLineOver = ({ expires_at: end }: Pick<UploadedLine, 'expires_at'>): boolean =>
  end !== undefined && Date.parse(end) <= Date.now()

/** @throws Refusal `invalid` for a line that is over before it is stored. */
export function requireFuture(line: UploadedLine): void {
  askedEnd(line.expires_at, Date.now())
}

/** The epoch of a session as it was when the file was accepted. */
export const sessionEpochIn = (
  { sessionEpochs }: Pick<Chunk, 'sessionEpochs'>,
  session: string | null,
): number => (session === null ? 0 : (sessionEpochs[session] ?? 0))

/** Lines without a time happened now; a millisecond apart, so that they stay in the order they came. */
const momentOf = ({ arrivedAt, fileLines, linesBefore }: Chunk, index: number): number =>
  arrivedAt - Math.max(0, fileLines - linesBefore - index - 1)

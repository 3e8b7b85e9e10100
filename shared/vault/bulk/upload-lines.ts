import { createHash } from 'node:crypto'
import type { NumberedLine, UploadedLine } from '#shared/domain/file-types.ts'
import { lineMemoryId, type LineIdentity, type BulkItem } from '#shared/vault/bulk/plan-items.ts'
import { parseMetadata, type Metadata } from '#shared/domain/metadata.ts'
import { parseExpiresAt, expiryFor, type Expiry } from '#shared/domain/expiry.ts'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import { presentTexts, textAndTimeKey } from '#shared/vault/bulk/memories.mongo.ts'
import { parseStart, type Moment } from '#shared/core/dates.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Lines of a file with equal keys are the same: their text and time are equal. */
export const uploadLineKey = ({ content, timestamp }: UploadedLine): string =>
  createHash('sha256').update(contentHash(content)).update(String(timestamp)).digest('base64')

/** Pieces of a document with equal keys are the same: their text stands at the same place. */
export const pieceKey = (hash: Uint8Array, { page, section }: Metadata = {}): string =>
  createHash('sha256')
    .update(hash)
    .update(JSON.stringify([page, section]))
    .digest('base64')

/**
 * The memories of a chunk of an upload: one per line, several for a long line. A line with a time is present
 * when the vault has a memory of the same text and time; one without a time, when an earlier line without one
 * had the same text; a piece of a document, when the vault has it at the same place of that document.
 */
export async function buildUploadItems(
  { mongo }: { mongo: Mongo },
  chunk: BulkChunk,
): Promise<BulkItem[]> {
  const partition = {
    session: chunk.session,
    sessionEpoch: acceptedSessionEpoch(chunk, chunk.session),
  }
  const lines = chunk.content as NumberedLine<UploadedLine>[]
  const items: (BulkItem & { hash: Buffer; hasTimestamp: boolean })[] = []
  for (const [index, line] of lines.entries()) {
    const timestamp = line.timestamp === undefined ? null : Math.trunc(line.timestamp)
    const identity: LineIdentity = {
      ...partition,
      vault: chunk.vault,
      epoch: chunk.epoch,
      contentHash: contentHash(line.content),
      timestamp,
    }
    // A document's piece keeps its id whatever time a later version has.
    if (chunk.document !== undefined) {
      identity.timestamp = null
      identity.piece = [chunk.document, pieceKey(identity.contentHash, line.metadata)]
    }
    const textChunks = line.content.trim() === '' ? [] : await splitIntoChunks(line.content)
    for (const [textChunkIndex, { text, tokens }] of textChunks.entries()) {
      items.push({
        idAt: generation => lineMemoryId(identity, textChunkIndex, generation),
        // No other vault can have these ids. `again`: an earlier line of the file has the same key (stage-file.ts).
        vaultOwnedFrom: 0,
        alreadyPresent: (line.again ?? false) || isLineExpired(line),
        hash: contentHash(text),
        hasTimestamp: identity.timestamp !== null,
        ...(line.picture && { picture: line.picture }),
        memory: {
          ...partition,
          vault: chunk.vault,
          epoch: chunk.epoch,
          tier: 1,
          role: line.role,
          text,
          at: timestamp ?? syntheticTimestamp(chunk, index),
          tokens,
          ...(textChunks.length > 1 && {
            piece: { message: lineMemoryId(identity, 0, 0), number: textChunkIndex },
          }),
          operation: chunk.operation,
          ...(line.metadata && { metadata: line.metadata }),
          ...expiryForLine(line, chunk),
          ...(chunk.document !== undefined && {
            // Nothing is restored here: these are the fields that a memory has beside those of a new one.
            restored: { consolidated: false, file: { id: chunk.document, by: chunk.operation } },
          }),
        },
      })
    }
  }
  const textsWithTime = items
    .filter(({ hasTimestamp, alreadyPresent }) => hasTimestamp && !alreadyPresent)
    .map(({ hash, memory }) => ({ hash, at: memory.at }))
  const present = await presentTexts(mongo, chunk, partition, textsWithTime)
  return items.map(({ hash, hasTimestamp, ...item }): BulkItem => {
    const isPresent = hasTimestamp && present.has(textAndTimeKey({ hash, at: item.memory.at }))
    return { ...item, alreadyPresent: item.alreadyPresent || isPresent }
  })
}

/** When the memory of a line expires: by the time it requests and by the retention, counted from now. */
export const expiryForLine = (
  { expires_at: end }: Pick<UploadedLine, 'expires_at'>,
  { retentionDays: days }: Pick<BulkChunk, 'retentionDays'>,
): Expiry =>
  expiryFor({ requested: end === undefined ? null : Date.parse(end), days, storedAt: Date.now() })

/** Whether a line has expired before it is stored. */
export const isLineExpired = ({ expires_at: end }: Pick<UploadedLine, 'expires_at'>): boolean =>
  end !== undefined && Date.parse(end) <= Date.now()

/** @throws Refusal `invalid` for a line that has expired before it is stored. */
export function requireFutureExpiry(line: UploadedLine): void {
  parseExpiresAt(line.expires_at, Date.now())
}

/** A line as clients write it: its times in any form, its metadata unchecked. */
export type LineWithMoments = {
  timestamp?: Moment
  expires_at?: Moment
  metadata?: Record<string, unknown>
}

/**
 * A line with its times as they are staged (epoch milliseconds, and ISO 8601), and checked metadata.
 *
 * @throws Refusal `invalid` as `parseMetadata`.
 */
export function resolveLine<Line extends LineWithMoments>({
  timestamp,
  expires_at: end,
  metadata: given,
  ...line
}: Line) {
  const metadata = parseMetadata(given)
  return {
    ...line,
    ...(timestamp !== undefined && { timestamp: parseStart(timestamp) }),
    ...(end !== undefined && { expires_at: new Date(parseStart(end)).toISOString() }),
    ...(metadata && { metadata }),
  }
}

/** The epoch of a session as it was when the file was accepted. */
export const acceptedSessionEpoch = (
  { sessionEpochs }: Pick<BulkChunk, 'sessionEpochs'>,
  session: string | null,
): number => (session === null ? 0 : (sessionEpochs[session] ?? 0))

/** Lines without a time get the time of arrival, a millisecond apart, so that they keep their order. */
const syntheticTimestamp = (
  { createdAt, fileLines, linesBefore }: BulkChunk,
  index: number,
): number => createdAt.getTime() - Math.max(0, fileLines - linesBefore - index - 1)

/** Whether a line has the fields that all lines of exports have, and rows of a search have not. */
const isExported = (line: unknown): boolean =>
  ['id', 'tier', 'session_id'].every(name => hasField(line, name))

const hasField = (line: unknown, name: string): boolean =>
  typeof line === 'object' && line !== null && Object.hasOwn(line, name)

/** @throws Refusal `invalid` for a line of an export, in a file of the other kind. */
export function refuseExportLine(line: unknown): void {
  if (isExported(line))
    throw new Refusal('invalid', 'a line of an export: POST /v1/memory/import takes it')
}

/** @throws Refusal `invalid` for a line of an upload, in a file of the other kind. */
export function refuseUploadLine(line: unknown): void {
  if (hasField(line, 'content') && !hasField(line, 'id') && !hasField(line, 'tier'))
    throw new Refusal('invalid', 'a line of an upload: POST /v1/memory/upload takes it')
}

import { Binary, MongoBulkWriteError } from 'mongodb'
import { refuseWhenUnreachable, type MemoryCollection } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import {
  insertBatches,
  toMemoryDocument,
  duplicateKeyCode,
  type NewMemory,
} from '#shared/vault/base/memories.mongo.ts'
import type { Partition } from '#shared/storage/mongo/partition.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import { contentHashIndex, idIndex } from '#shared/storage/mongo/indexes.ts'
import { isUnconfirmed } from '#shared/storage/mongo/server-errors.ts'
import {
  findDocuments,
  epochFilter,
  idBatches,
  withWriteTimeout,
} from '#shared/storage/mongo/commands.ts'

/** Fields of a memory that only a file or a copy can set. */
export type RestoredFields = Pick<
  MemoryDocument,
  | 'consolidated'
  | 'feedback'
  | 'batch'
  | 'sources'
  | 'covers'
  | 'consolidated_by'
  | 'provenance'
  | 'file'
>

export type RestoredMemory = NewMemory & { restored?: RestoredFields }

/** The document of an id in a vault: a live memory of the current epoch, or an older one or a tombstone. */
export type StoredState = Pick<
  MemoryDocument,
  | 'session'
  | 'session_epoch'
  | 'tier'
  | 'tokens'
  | 'importance'
  | 'consolidated'
  | 'feedback'
  | 'operation'
> & { isLive: boolean }

/** The documents of these ids in the vault; ids without one are left out. */
export async function findStoredStates(
  { memories }: MemoryCollection,
  { vault, epoch }: VaultEpoch,
  ids: readonly string[],
): Promise<Map<string, StoredState>> {
  const states = new Map<string, StoredState>()
  for (const part of idBatches(ids)) {
    const rows = await findDocuments(
      memories,
      { vault: { $eq: vault }, _id: { $in: part } },
      {
        projection: { text: 0, hash: 0, vectors: 0, sources: 0 },
        hint: idIndex,
      },
    )
    for (const { _id, ...row } of rows) {
      states.set(_id, { ...row, isLive: row.epoch === epoch && row.tomb_at === undefined })
    }
  }
  return states
}

export const textAndTimeKey = ({ hash, at }: { hash: Uint8Array; at: number }): string =>
  `${Buffer.from(hash).toString('base64')}:${at}`

/** Which of these texts with their times a part of the vault has already, as `textAndTimeKey`. */
export async function presentTexts(
  { memories }: MemoryCollection,
  { vault, epoch }: VaultEpoch,
  { session, sessionEpoch }: Partition,
  texts: readonly { hash: Uint8Array; at: number }[],
): Promise<Set<string>> {
  if (texts.length === 0) return new Set()
  const rows = await findDocuments(
    memories,
    {
      vault: { $eq: vault },
      hash: { $in: texts.map(({ hash }) => new Binary(hash)) },
      epoch: { $eq: epoch },
      session: { $eq: session ?? '' },
      session_epoch: { $eq: sessionEpoch },
    },
    {
      projection: { _id: 0, hash: 1, at: 1 },
      hint: contentHashIndex,
    },
  )
  return new Set(
    rows.map(({ hash, at }) => textAndTimeKey({ hash: hash.value(), at: at.getTime() })),
  )
}

/** Stores memories whose ids are free, journaled. @returns the ids that any vault has taken. */
export async function insertIfIdFree(
  { memories }: MemoryCollection,
  added: readonly RestoredMemory[],
  space: string,
): Promise<string[]> {
  const takenIds: string[] = []
  for (const batch of insertBatches(added)) {
    const documents = batch.map(memory => toRestoredDocument(memory, space))
    const inserting = memories.insertMany(documents, { ordered: false })
    await withWriteTimeout(inserting).catch((error: unknown) => {
      takenIds.push(...takenPositions(error).map(index => documents[index]!._id))
    })
  }
  return takenIds
}

/** Replaces memories by id; one that was deleted in the meantime stays deleted. */
export async function replaceStored(
  { memories }: MemoryCollection,
  replacing: readonly RestoredMemory[],
  space: string,
): Promise<void> {
  for (const batch of insertBatches(replacing)) {
    const changes = batch.map(memory => toReplacement(toRestoredDocument(memory, space)))
    await withWriteTimeout(memories.bulkWrite(changes, { ordered: true })).catch(
      refuseWhenUnreachable,
    )
  }
}

function toReplacement(document: MemoryDocument) {
  const { _id, vault, epoch, version, ...fields } = document
  const absent = optional.filter(field => fields[field] === undefined)
  const $unset = Object.fromEntries(absent.map(field => [field, '' as const]))
  return {
    updateOne: {
      filter: { ...epochFilter({ vault, epoch }), _id: { $eq: _id } },
      update: { $set: fields, $inc: { version }, ...(absent.length > 0 && { $unset }) },
      hint: idIndex,
    },
  }
}

/** Fields that a memory may lack: replacing unsets those that the new one lacks. */
const optional = [
  'importance',
  'speaker',
  'metadata',
  'piece',
  'feedback',
  'batch',
  'sources',
  'covers',
  'consolidated_by',
  'provenance',
  'file',
  'expires_at',
  'expires_asked',
] as const

function toRestoredDocument(
  { restored, ...memory }: RestoredMemory,
  space: string,
): MemoryDocument {
  return { ...toMemoryDocument(memory, space), ...restored }
}

/** Positions in the batch of the documents whose ids were taken. */
function takenPositions(error: unknown): number[] {
  if (error instanceof MongoBulkWriteError && !isUnconfirmed(error)) {
    const failures = [error.writeErrors].flat()
    if (failures.length > 0 && failures.every(({ code }) => code === duplicateKeyCode)) {
      return failures.map(({ index }) => index)
    }
  }
  return refuseWhenUnreachable(error)
}

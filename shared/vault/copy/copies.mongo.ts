import { Binary } from 'mongodb'
import type { Condition } from '#shared/domain/condition.ts'
import type { Memory, VaultScope } from '#shared/domain/memory.ts'
import type { MemoryCollection } from '#shared/storage/mongo/connect.ts'
import {
  memoryFromDocument,
  embeddedMemoryProjection,
  memoryFields,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { partitionFilter } from '#shared/storage/mongo/partition.ts'
import { contentHashIndex, idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { findDocuments, epochFilter } from '#shared/storage/mongo/commands.ts'

const corePartition = { session: null, sessionEpoch: 0 }

/** Ten thousand memories are read in half a second; the rest of the time allows for a busy server. */
const listDeadlineMs = 20_000

/**
 * The raw core memories of a vault space that meet a condition, in the order of the event.
 *
 * @param max the most memories to read
 */
export async function rawCoreMemories(
  { memories }: MemoryCollection,
  scope: VaultScope,
  space: string,
  { max, condition }: { max: number; condition?: Condition | undefined },
): Promise<Memory[]> {
  const rows = await findDocuments(
    memories,
    {
      ...partitionFilter(scope, corePartition, space),
      tier: { $eq: 1 },
      ...conditionFilter(condition),
    },
    {
      projection: memoryFields,
      sort: { at: 1, _id: 1 },
      hint: partitionIndex,
      limit: max,
    },
    listDeadlineMs,
  )
  return rows.map(memoryFromDocument)
}

/** A memory about to be copied. */
export type CopySource = Memory & {
  hash: Uint8Array
  /** Null when it no longer has one in the space. */
  vector: Float32Array | null
}

/** Those of the given raw core memories that still exist. */
export async function copySources(
  { memories }: MemoryCollection,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  space: string,
  ids: readonly string[],
): Promise<Map<string, CopySource>> {
  const rows = await findDocuments(
    memories,
    {
      ...epochFilter(scope),
      session: { $eq: '' },
      tier: { $eq: 1 },
      _id: { $in: [...ids] },
    },
    {
      projection: { ...embeddedMemoryProjection(space), hash: 1 },
      hint: idIndex,
    },
  )
  return new Map(rows.map(row => [row._id, toCopySource(row, space)]))
}

function toCopySource(document: MemoryDocument, space: string): CopySource {
  const vector = document.vectors[space]
  return {
    ...memoryFromDocument(document),
    hash: document.hash.value(),
    vector: vector ? vector.toFloat32Array() : null,
  }
}

export type MemoryTextHash = { id: string; hash: Uint8Array }

/** The memories of a core vault, of any tier and space, whose text is one of these. */
export async function memoriesWithTexts(
  { memories }: MemoryCollection,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  hashes: readonly Uint8Array[],
): Promise<MemoryTextHash[]> {
  const rows = await findDocuments(
    memories,
    {
      vault: { $eq: vault },
      hash: { $in: hashes.map(hash => new Binary(hash)) },
      epoch: { $eq: epoch },
      session: { $eq: '' },
    },
    { projection: { hash: 1 }, hint: contentHashIndex },
  )
  return rows.map(({ _id, hash }) => ({ id: _id, hash: hash.value() }))
}

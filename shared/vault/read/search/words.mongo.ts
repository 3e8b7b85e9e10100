import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { isUnreachable } from '#shared/storage/mongo/server-errors.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { partitionFilter } from '#shared/storage/mongo/partition.ts'
import { rowsByRareWords, type ExactWord } from '#shared/vault/read/search/exact-words.ts'
import type { NearestQuestion } from '#shared/vault/read/search/nearest.ts'
import { questionFilter } from '#shared/vault/read/search/nearest-scan.mongo.ts'
import { findDocuments } from '#shared/storage/mongo/commands.ts'

/** Reading the texts of 60,000 rows takes 0.2 s. What was not found by then is left to the vectors. */
const searchWithinMs = 1_500

/** Rows with any of the words that are looked at, and rows that are returned. */
const matchesMax = 5_000
const rowsMax = 100

/**
 * The memories with the rarest of some exact words, for a vault without an index in memory: its words are not
 * indexed, and the nearest vectors may not have them. Reads the texts of the partition for at most 1.5 s.
 */
export async function memoriesWithWords(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  question: NearestQuestion,
  words: readonly ExactWord[],
): Promise<EmbeddedMemory[]> {
  const { partition, space } = question
  if (words.length === 0 || partition.tagSets?.length === 0) return []
  const filter = { ...partitionFilter(scope, partition, space), ...questionFilter(question) }
  const matches: Pick<MemoryDocument, '_id' | 'text'>[] = []
  try {
    const cursor = memories.find(
      { ...filter, text: { $regex: words.map(({ pattern }) => pattern).join('|'), $options: 'i' } },
      {
        projection: { text: 1 },
        hint: partition.tagSets ? tagSetIndex : partitionIndex,
        limit: matchesMax,
        signal: deadline(memories, searchWithinMs),
      },
    )
    for await (const row of cursor) matches.push(row)
  } catch (error) {
    // What was read until the time was over counts.
    if (!isUnreachable(error)) throw error
  }
  if (matches.length === 0) return []
  const ids = rowsByRareWords(matches, words, rowsMax)
  const rows = await findDocuments(
    memories,
    { ...filter, _id: { $in: ids } },
    { projection: embeddedMemoryProjection(space), hint: idIndex },
    searchWithinMs,
  )
  return rows.map(row => embeddedMemoryFromDocument(row, space))
}

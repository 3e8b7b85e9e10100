import { conditionOf } from '#shared/domain/filter.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { toMemoryDocument, ignoreDuplicateKeys } from '#shared/vault/base/memories.mongo.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { partitionFilter, toldFilter } from '#shared/storage/mongo/partition.ts'
import type { SourceTier, Span } from '#shared/domain/lease.ts'
import { idIndex, unconsolidatedIndex } from '#shared/storage/mongo/indexes.ts'
import type { CommitJob } from '#shared/domain/job-payloads.ts'
import {
  aggregateDocuments,
  acknowledged,
  findDocuments,
  findDocument,
  epochFilter,
  idsFilter,
  idBatches,
  withWriteTimeout,
} from '#shared/storage/mongo/commands.ts'

/** An unconsolidated memory; `covers`: its own time, or the period of a reflection. */
export type UnconsolidatedMemory = {
  id: string
  text: string
  /** Epoch milliseconds. */
  at: number
  tokens: number
  /** 0 for raw memories. */
  importance: number
  covers: Span
}

const corePartition = { session: null, sessionEpoch: 0 }

const projection = { text: 1, at: 1, tokens: 1, importance: 1, covers: 1 } as const

/** Bytes per write: the engine re-reads its buffer for every chunk. */
const writeBytes = 1_500_000

/**
 * Streams the memories of a tier in the core vault that no reflection covers, oldest first. The index
 * `unconsolidated` holds exactly these, in this order.
 */
export async function* streamUnconsolidated(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { tier, space }: { tier: SourceTier; space: string },
): AsyncGenerator<UnconsolidatedMemory, void, void> {
  const cursor = memories.find(
    {
      ...partitionFilter(scope, corePartition, space),
      tier: { $eq: tier },
      consolidated: { $eq: false },
    },
    {
      projection,
      sort: { at: 1, _id: 1 },
      hint: unconsolidatedIndex,
      batchSize: 1_000,
      signal: deadline(memories),
    },
  )
  try {
    for await (const document of cursor) yield toUnconsolidatedMemory(document)
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

/** Whether the core vault has an unconsolidated memory of a tier, in any vault space. */
export const hasUnconsolidated = async (
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  tier: SourceTier,
): Promise<boolean> => (await spacesOfFirstUnconsolidated(mongo, scope, { tier })) !== undefined

/**
 * The vault spaces of the oldest unconsolidated memory of a tier in the core vault outside of the space
 * `except`.
 */
export async function spacesOfFirstUnconsolidated(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { tier, except }: { tier: SourceTier; except?: string },
): Promise<string[] | undefined> {
  const filter = {
    ...epochFilter(scope),
    session: { $eq: '' },
    tier: { $eq: tier },
    consolidated: { $eq: false },
    ...toldFilter,
    ...(except !== undefined && { [`vectors.${except}`]: { $exists: false } }),
  }
  const one = await findDocument(memories, filter, {
    projection: { vectors: 1 },
    hint: unconsolidatedIndex,
  })
  return one ? Object.keys(one.vectors) : undefined
}

/** Those of the memories that still exist, in the given order. */
export async function findInGivenOrder(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<UnconsolidatedMemory[]> {
  const memoriesById = new Map<string, UnconsolidatedMemory>()
  for (const batchIds of idBatches(ids)) {
    const filter = idsFilter(scope, batchIds)
    const documents = await findDocuments(memories, filter, { projection, hint: idIndex })
    for (const document of documents)
      memoriesById.set(document._id, toUnconsolidatedMemory(document))
  }
  return ids.flatMap(id => memoriesById.get(id) ?? [])
}

/** Stores the reflections of a commit, journaled; one whose id is taken is left as it is. */
export async function addReflections(
  { memories }: Pick<Mongo, 'memories'>,
  job: CommitJob,
  sourceIds: readonly string[],
): Promise<void> {
  const ofProgram = await hasProgramSource({ memories }, job, sourceIds)
  // Every reflection contains the ids of all its sources, which bounds the reflections per message.
  const lineage = sourceIds.length * 48
  const size = Math.max(...job.reflections.map(row => row.vector.length + row.text.length * 3))
  const rows = Math.max(1, Math.floor(writeBytes / (size + lineage)))
  for (let start = 0; start < job.reflections.length; start += rows) {
    const documents = job.reflections.slice(start, start + rows).map(reflection => ({
      ...toReflectionDocument(job, reflection, sourceIds),
      ...(ofProgram && { metadata: [programTerm] }),
    }))
    const insert = memories.insertMany(documents, { ordered: false })
    await withWriteTimeout(insert).catch(ignoreDuplicateKeys)
  }
}

const programTerm = 'origin="program"'
const saidByProgram = conditionOf({ metadata: { origin: 'program' } })

/** Whether a program wrote one of the sources: what is made of it is no more the person's own word than that. */
async function hasProgramSource(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: Pick<CommitJob, 'vault' | 'epoch'>,
  sourceIds: readonly string[],
): Promise<boolean> {
  for (const ids of idBatches(sourceIds)) {
    const filter = { ...idsFilter({ vault, epoch }, ids), ...conditionFilter(saidByProgram) }
    if (await findDocument(memories, filter, { projection: { _id: 1 }, hint: idIndex })) return true
  }
  return false
}

/** The sources a commit has consolidated: those that still existed. */
export type ConsolidatedTotals = { count: number; tokens: number; importance: number }

/**
 * Marks the sources of a batch as consolidated by it. Idempotent: a second run returns the same totals, as long
 * as the sources exist.
 */
export async function markConsolidated(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch, batch }: Pick<CommitJob, 'vault' | 'epoch' | 'batch'>,
  sourceIds: readonly string[],
): Promise<ConsolidatedTotals> {
  const sum: ConsolidatedTotals = { count: 0, tokens: 0, importance: 0 }
  for (const batchIds of idBatches(sourceIds)) {
    const filter = idsFilter({ vault, epoch }, batchIds)
    const update = memories.updateMany(
      { ...filter, ...toldFilter },
      { $set: { consolidated: true }, $addToSet: { consolidated_by: batch } },
      { hint: idIndex },
    )
    await acknowledged(update)
    const [marked] = await aggregateDocuments<ConsolidatedTotals>(
      memories,
      [
        { $match: { ...filter, consolidated_by: { $eq: batch } } },
        {
          $group: {
            _id: null,
            count: { $sum: 1 },
            tokens: { $sum: '$tokens' },
            importance: { $sum: '$importance' },
          },
        },
      ],
      { hint: idIndex },
    )
    sum.count += marked?.count ?? 0
    sum.tokens += marked?.tokens ?? 0
    sum.importance += marked?.importance ?? 0
  }
  return sum
}

function toUnconsolidatedMemory(document: MemoryDocument): UnconsolidatedMemory {
  const { _id, text, at, tokens, importance = 0, covers } = document
  const moment = at.getTime()
  return {
    id: _id,
    text,
    at: moment,
    tokens,
    importance,
    covers: covers
      ? { from: covers.from.getTime(), to: covers.to.getTime() }
      : { from: moment, to: moment },
  }
}

/** The time of a reflection is the end of the period it covers. */
function toReflectionDocument(
  { batch, vault, epoch, space, tier, covers, expiresAt }: CommitJob,
  { vector, ...reflection }: CommitJob['reflections'][number],
  sourceIds: readonly string[],
): MemoryDocument {
  const memory = {
    ...reflection,
    vault,
    epoch,
    session: null,
    sessionEpoch: 0,
    tier,
    role: 'system',
    at: covers.to,
    operation: batch,
    vector: decodeVector(vector),
    ...(expiresAt !== undefined && { expiresAt }),
  } as const
  return {
    ...toMemoryDocument(memory, space),
    batch,
    sources: [...sourceIds],
    covers: { from: new Date(covers.from), to: new Date(covers.to) },
  }
}

/** A copy, since offsets in the decoder's pool may not be aligned to floats. */
const decodeVector = (base64: string): Float32Array =>
  new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer)

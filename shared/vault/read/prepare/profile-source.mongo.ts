import { createSlices } from '#shared/core/event-loop.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { findStatements } from '#shared/search/profile/find-statements.ts'
import { type Mongo, refuseWhenUnreachable } from '#shared/storage/mongo/connect.ts'
import { toldFilter, type Partition } from '#shared/storage/mongo/partition.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { changesSince } from '#shared/vault/base/vault-changes.postgres.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import type {
  ProfileSource,
  StatementsById,
  StoredStatement,
} from '#shared/vault/read/prepare/profile-cache.ts'
import type { Filter } from 'mongodb'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { memoryFields, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { epochFilter } from '#shared/storage/mongo/commands.ts'

/** After more changes the whole partition is read again instead of the changed ids. */
const incrementalChangesMax = 5_000

/** Reads the statements of vaults: the lines from MongoDB, the log of changes from Postgres. */
export const createProfileSource = ({
  mongo,
  postgres,
}: {
  mongo: Pick<Mongo, 'memories'>
  postgres: Postgres
}): ProfileSource => ({
  async load(ref, statementsMax) {
    const partition = await visiblePartition(postgres, ref)
    return readStatements(mongo, { scope: ref.scope, partition, statementsMax })
  },

  async changes(ref, since) {
    const { scope, session } = ref
    const log = await changesSince(postgres.query, scope, session, since)
    if (!log || log.stored.length > incrementalChangesMax) return null
    const changed = [...new Set([...log.stored, ...log.removed])]
    if (log.stored.length === 0) return { changed, statements: new Map() }
    const partition = await visiblePartition(postgres, ref)
    const read = { scope, partition, ids: log.stored, statementsMax: Infinity }
    return { changed, statements: (await readStatements(mongo, read))! }
  },
})

/** Finding takes about 20 µs a line, in slices. @returns null where there are more statements than that */
async function readStatements(
  mongo: Pick<Mongo, 'memories'>,
  read: {
    scope: VaultScope
    partition: Partition
    /** These memories; all, when missing. */
    ids?: readonly string[]
    statementsMax: number
  },
): Promise<StatementsById | null> {
  const { scope, partition, ids, statementsMax } = read
  const found: StatementsById = new Map()
  let count = 0
  const slices = createSlices()
  for await (const lines of userLines(mongo, scope, partition, ids)) {
    for (const line of lines) {
      const statements = statementsIn(line)
      if (statements.length > 0) found.set(line.id, statements)
      count += statements.length
      if (count > statementsMax) return null
      await slices.pause()
    }
  }
  return found
}

const statementsIn = ({ id, text, at, speaker, ...line }: UserLine): StoredStatement[] =>
  findStatements(text).map((statement, position) => ({
    ...statement,
    memory: id,
    at,
    position,
    ...line,
    // Only what the author of a shared memory says replaces it.
    ...((speaker ?? line.author) !== undefined && { speaker: speaker ?? line.author }),
  }))

/** A memory of a person's own words. */
type UserLine = {
  id: string
  text: string
  /** Epoch milliseconds. */
  at: number
  speaker?: string
  expiresAt?: number
  /** The tags of a shared memory. */
  tags?: string[]
  author?: string
}

const fields = { ...memoryFields, tags: 1, author: 1 } as const

/** 100,000 lines are read in about 2 s; reading goes on after callers were refused. */
const readWithinMs = 120_000
const batchRows = 200

/**
 * Streams the lines of people in a partition, unordered, of every vector space: nothing that a model has said,
 * no reflections.
 *
 * @param ids only these
 */
async function* userLines(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  partition: Partition,
  ids?: readonly string[],
): AsyncGenerator<UserLine[], void, void> {
  if (partition.tagSets?.length === 0 || ids?.length === 0) return
  const shared = partition.tagSets ? tagSetIndex : partitionIndex
  const cursor = memories.find(
    { ...userFilter(scope, partition), ...(ids && { _id: { $in: [...ids] } }) },
    {
      projection: fields,
      hint: ids ? idIndex : shared,
      batchSize: batchRows,
      signal: deadline(memories, readWithinMs),
    },
  )
  try {
    let lines: UserLine[] = []
    for await (const document of cursor) {
      if (lines.push(toLine(document)) < batchRows) continue
      yield lines
      lines = []
    }
    yield lines
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

const userFilter = (
  scope: VaultScope,
  { session, sessionEpoch, tagSets }: Partition,
): Filter<MemoryDocument> => ({
  ...epochFilter(scope),
  session: { $eq: session ?? '' },
  session_epoch: { $eq: sessionEpoch },
  tier: { $eq: 1 },
  role: { $eq: 'user' },
  ...toldFilter,
  // A tombstone has none.
  text: { $exists: true },
  ...(tagSets && { tag_set: { $in: [...tagSets] } }),
})

const toLine = ({ _id, text, at, ...rest }: MemoryDocument): UserLine => ({
  id: _id,
  text,
  at: at.getTime(),
  ...(rest.speaker !== undefined && { speaker: rest.speaker }),
  // What a program says of a person replaces nothing that the person says.
  ...(rest.metadata?.includes('origin="program"') && { speaker: 'program' }),
  ...(rest.expires_at && { expiresAt: rest.expires_at.getTime() }),
  ...(rest.tags && { tags: rest.tags }),
  ...(rest.author !== undefined && { author: rest.author }),
})

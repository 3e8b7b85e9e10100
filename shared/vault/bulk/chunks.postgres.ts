import type {
  BulkFileKind,
  LineError,
  PlannedMemory,
  StagedLine,
  BulkTally,
} from '#shared/domain/file-types.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** A chunk with the fields of its file. */
export type BulkChunk = {
  file: string
  n: number
  operation: string
  vault: string
  kind: BulkFileKind
  session: string | null
  model: string
  replaces: boolean
  /** The account's retention in days; null: unlimited. */
  retentionDays: number | null
  epoch: number
  /** By session; sessions with epoch 0 are left out. */
  sessionEpochs: Record<string, number>
  /** When the file began to arrive, epoch milliseconds. */
  arrivedAt: number
  /** Lines of the whole file. */
  fileLines: number
  content: StagedLine[]
  plan: PlannedMemory[] | null
  /** Lines before those of this chunk. */
  linesBefore: number
  lines: number
  failed: number
  /** The operation was cancelled: the chunk is not to be stored. */
  isCancelled: boolean
}

/** A chunk that is still to be stored; undefined when it is stored or its file was deleted. */
export async function findBulkChunk(
  query: Query,
  file: string,
  n: number,
): Promise<BulkChunk | undefined> {
  const { rows } = await query<Omit<BulkChunk, 'arrivedAt'> & { arrivedAt: Date }>(
    `select f.id as file, c.n, f.operation, f.vault, f.kind, f.session, f.model, f.replaces, f.epoch,
            f.session_epochs as "sessionEpochs", f.created_at as "arrivedAt", f.lines as "fileLines",
            c.content, c.plan, c.lines, c.failed, f.cancelled_at is not null as "isCancelled",
            (select a.retention_days from vaults v join accounts a on a.id = v.account
             where v.id = f.vault) as "retentionDays",
            (select coalesce(sum(b.lines), 0)::int from bulk_chunks b
             where b.file = c.file and b.n < c.n) as "linesBefore"
     from bulk_files f join bulk_chunks c on c.file = f.id
     where f.id = $1 and c.n = $2 and f.operation is not null and not c.settled`,
    [file, n],
    'bulk.find',
  )
  const row = rows[0]
  return row && { ...row, arrivedAt: row.arrivedAt.getTime() }
}

/**
 * Saves the plan of a chunk before its first memory is written.
 *
 * @returns the plan to follow: the first one saved, when two workers run the same chunk.
 */
export async function savePlan(
  query: Query,
  { file, n }: Pick<BulkChunk, 'file' | 'n'>,
  plan: readonly PlannedMemory[],
): Promise<PlannedMemory[]> {
  const { rows } = await query<{ plan: PlannedMemory[] }>(
    `update bulk_chunks set plan = coalesce(plan, $3)
     where file = $1 and n = $2 and not settled returning plan`,
    [file, n, JSON.stringify(plan)],
    'bulk.plan',
  )
  return rows[0]?.plan ?? [...plan]
}

/** Replaces a saved plan after ids turned out to be taken. */
export async function updatePlan(
  query: Query,
  { file, n }: Pick<BulkChunk, 'file' | 'n'>,
  plan: readonly PlannedMemory[],
): Promise<void> {
  await query(
    'update bulk_chunks set plan = $3 where file = $1 and n = $2 and not settled',
    [file, n, JSON.stringify(plan)],
    'bulk.amend',
  )
}

/**
 * Marks a chunk as stored and deletes its lines.
 *
 * @returns false when it was marked before: its effects must not count twice.
 */
export async function finalizeBulkChunk(
  query: Query,
  { file, n }: Pick<BulkChunk, 'file' | 'n'>,
  { memories, stored, replaced, skipped, tokens }: Omit<BulkTally, 'lines' | 'failed'> & TokenCount,
): Promise<boolean> {
  const { rowCount } = await query(
    `update bulk_chunks set settled = true, content = null, plan = null,
            memories = $3, stored = $4, replaced = $5, skipped = $6, tokens = $7
     where file = $1 and n = $2 and not settled`,
    [file, n, memories, stored, replaced, skipped, tokens],
    'bulk.settle',
  )
  return rowCount === 1
}

/**
 * Settles a chunk of a cancelled file without its lines; they count nowhere. Chunks that an earlier run has
 * planned may be stored in part and are not settled here.
 *
 * @returns false when it was settled before.
 */
export async function cutBulkChunk(
  query: Query,
  { file, n }: Pick<BulkChunk, 'file' | 'n'>,
): Promise<boolean> {
  const { rowCount } = await query(
    `update bulk_chunks set settled = true, content = null, lines = 0, failed = 0, errors = '[]'
     where file = $1 and n = $2 and not settled and plan is null`,
    [file, n],
    'bulk.cut',
  )
  return rowCount === 1
}

/** Tokens of memories that were stored or replaced. */
type TokenCount = { tokens: number }

type BulkProgress = BulkTally & TokenCount & { left: number; cut: number; errors: LineError[] }

/** The sums over the settled chunks of a file, the number of open ones, and the first faulty lines. */
export async function tallyBulkFile(
  query: Query,
  file: string,
  errorsMax: number,
): Promise<BulkProgress> {
  const { rows } = await query<BulkProgress>(
    `select sum(lines) filter (where settled)::int as lines,
            sum(failed) filter (where settled)::int as failed,
            sum(memories)::int as memories, sum(stored)::int as stored,
            sum(replaced)::int as replaced, sum(skipped)::int as skipped, sum(tokens)::int as tokens,
            (count(*) filter (where not settled))::int as left,
            (count(*) filter (where settled and lines = 0))::int as cut,
            (select coalesce(json_agg(error), '[]') from (
               select e.error from bulk_chunks c, json_array_elements(c.errors) as e(error)
               where c.file = $1 order by (e.error->>'line')::int limit $2) first) as errors
     from bulk_chunks where file = $1`,
    [file, errorsMax],
    'bulk.tally',
  )
  return rows[0]!
}

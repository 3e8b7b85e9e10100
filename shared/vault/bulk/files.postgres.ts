import { refusal } from '#shared/core/refusal.ts'
import type { LineError, PlannedMemory, StagedLine } from '#shared/domain/file-types.ts'
import type { OperationStep } from '#shared/operations/operation-steps.postgres.ts'
import type { RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** The request of a file, complete when its first bytes arrive. */
export type FileRequest = {
  /** For an upload; each line of an import names its own. */
  session: string | null
  model: string
  /** For an import: whether a memory replaces the one with its id. */
  replaces: boolean
  /** The id of the document that an upload is of. */
  document?: string | undefined
  /** What becomes of private data in captions of its pictures. */
  redaction?: RedactionPolicy | null | undefined
}

/** Added when the file is accepted. */
type AcceptedFile = {
  /** Lines of the whole file. */
  fileLines: number
  /** By session; sessions with epoch 0 are left out. */
  sessionEpochs: Record<string, number>
}

/** The valid lines of a chunk. */
export type ChunkInput = {
  content: StagedLine[]
  /** Lines of an upload before those of this chunk. */
  linesBefore: number
  /** The last step of a document, once all of it is stored: what an earlier version had is removed. */
  removesEarlier?: true
}

export type BulkChunk = OperationStep<FileRequest & AcceptedFile, ChunkInput, PlannedMemory[]> & {
  /** The account's retention in days; null: unlimited. */
  retentionDays: number | null
}

/** Counts of lines and errors of a chunk when it is staged. */
export type ChunkLines = { lines: number; failed: number; errors: LineError[] }

/** Deletes what was staged of a file that no operation has taken. */
export async function dropUnclaimedFile(query: Query, file: string): Promise<void> {
  await query(
    'delete from long_operations where id = $1 and operation is null',
    [file],
    'files.drop-unclaimed',
  )
}

/**
 * Marks the file of a running operation as cancelled: chunks that have not begun are not stored.
 *
 * @returns false when the operation has ended, or has no file.
 */
export async function cancelFileOfOperation(
  query: Query,
  account: string,
  operation: string,
): Promise<boolean> {
  const { rowCount } = await query(
    `update long_operations l set cancelled_at = coalesce(cancelled_at, now())
     from operations o
     where l.operation = $2 and l.kind in ('upload', 'import')
       and o.id = $2 and o.account = $1 and o.state in ('accepted', 'running')`,
    [account, operation],
    'files.cancel',
  )
  return rowCount === 1
}

/** A request ends after two minutes; a file that is staged for ten belongs to a process that died. */
const staleMinutes = 10

/** Deletes staged files whose request ended without accepting them. @returns how many. */
export async function dropStaleFiles(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from long_operations
     where operation is null and created_at < now() - make_interval(mins => $1)`,
    [staleMinutes],
    'files.drop-stale',
  )
  return rowCount
}

/** Sessions that a file `l` names. */
const sessionsOfFile = `select l.request->>'session'
  union all select unnest(sessions) from operation_steps where long_operation = l.id`

/**
 * The operation that is storing the same file in the same vault. One that was cancelled, or whose vault or
 * session was cleared since, does not count.
 */
export async function findSameFileInFlight(
  query: Query,
  vault: string,
  requestHash: Buffer,
): Promise<string | undefined> {
  const { rows } = await query<{ operation: string }>(
    `select l.operation from long_operations l
     join operations o on o.id = l.operation join vaults v on v.id = l.vault
     where l.vault = $1 and l.request_hash = $2 and o.state in ('accepted', 'running')
       and l.cancelled_at is null and l.epoch = v.epoch
       and not exists (
         select 1 from sessions s
         where s.vault = l.vault and s.session in (${sessionsOfFile})
           and s.epoch <> coalesce((l.request->'sessionEpochs'->>s.session)::int, 0))`,
    [vault, requestHash],
    'files.same',
  )
  return rows[0]?.operation
}

/**
 * Makes way for a document: an upload of another version that was given up is not stored any more.
 *
 * @throws Refusal `conflict` while another version is being stored
 */
export async function endEarlierVersions(
  query: Query,
  vault: string,
  document: string,
): Promise<void> {
  const { rows } = await query<{ operation: string; state: string }>(
    `update long_operations l set cancelled_at = case o.state when 'failed' then now() else l.cancelled_at end
     from operations o
     where l.vault = $1 and l.request->>'document' = $2 and o.id = l.operation
       and o.state in ('accepted', 'running', 'failed')
     returning l.operation, o.state`,
    [vault, document],
    'files.earlier-versions',
  )
  const running = rows.find(({ state }) => state !== 'failed')
  if (!running) return
  throw refusal('conflict', 'fileBeingStored', { operation: running.operation })
}

/** Assigns a staged file to an operation, in the transaction that accepts it. @returns its chunks' numbers. */
export async function claimFile(
  query: Query,
  file: string,
  { operation, requestHash, epoch }: { operation: string; requestHash: Buffer; epoch: number },
): Promise<number[]> {
  const { rows } = await query<{ numbers: number[] }>(
    `with kept as (update kept_files set operation = $2 where id = $1)
     update long_operations l
     set operation = $2, request_hash = $3, epoch = $4,
         request = request || jsonb_build_object(
           'fileLines', (select sum((counts->>'lines')::int) from operation_steps where long_operation = $1),
           'sessionEpochs', coalesce(
             (select jsonb_object_agg(s.session, s.epoch) from sessions s
              where s.vault = l.vault and s.session in (${sessionsOfFile})), '{}'))
     where l.id = $1
     returning array(select n from operation_steps where long_operation = $1 order by n) as numbers`,
    [file, operation, requestHash, epoch],
    'files.claim',
  )
  return rows[0]!.numbers
}

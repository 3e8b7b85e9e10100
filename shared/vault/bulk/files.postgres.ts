import type { BulkFileKind, LineError, StagedLine } from '#shared/domain/file-types.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { AcceptedOperation } from '#shared/operations/operations.postgres.ts'

/** A file whose first bytes have arrived. */
export type NewBulkFile = {
  id: string
  vault: string
  kind: BulkFileKind
  session: string | null
  model: string
  replaces: boolean
}

/** Lines of a file for one job. */
export type NewBulkChunk = {
  n: number
  tier: number
  /** Valid and faulty ones. */
  lines: number
  failed: number
  errors: LineError[]
  sessions: string[]
  content: StagedLine[]
}

export async function insertBulkFile(query: Query, file: NewBulkFile): Promise<void> {
  const { id, vault, kind, session, model, replaces } = file
  await query(
    `insert into bulk_files (id, vault, kind, session, model, replaces)
     values ($1, $2, $3, $4, $5, $6)`,
    [id, vault, kind, session, model, replaces],
    'bulk.begin',
  )
}

/**
 * Adds a chunk to a file that is still arriving. The commit that accepts the file makes it durable; until
 * then it need not be.
 */
export async function stageBulkChunk(
  query: Query,
  file: string,
  chunk: NewBulkChunk,
): Promise<void> {
  const { n, tier, lines, failed, errors, sessions, content } = chunk
  await query(
    `with fast as (select set_config('synchronous_commit', 'off', true))
     insert into bulk_chunks (file, n, tier, lines, failed, errors, sessions, content)
     select $1, $2, $3, $4, $5, $6::json, $7::text[], $8::json from fast`,
    [file, n, tier, lines, failed, JSON.stringify(errors), sessions, JSON.stringify(content)],
    'bulk.stage',
  )
}

/** Forgets what was staged of a file that no operation has taken. */
export async function dropUnclaimedFile(query: Query, file: string): Promise<void> {
  await query(
    'delete from bulk_files where id = $1 and operation is null',
    [file],
    'bulk.drop-unclaimed',
  )
}

/** Forgets a file whose operation has ended. */
export async function dropBulkFile(query: Query, file: string): Promise<void> {
  await query('delete from bulk_files where id = $1', [file], 'bulk.drop')
}

/** The same by the operation; most have none. */
export async function dropFileOfOperation(query: Query, operation: string): Promise<void> {
  await query('delete from bulk_files where operation = $1', [operation], 'bulk.drop-of')
}

/**
 * Marks the file of a running operation as cancelled: its chunks that have not begun are not stored.
 *
 * @returns false when the operation has ended, or has no file.
 */
export async function cancelFileOfOperation(
  query: Query,
  account: string,
  operation: string,
): Promise<boolean> {
  const { rowCount } = await query(
    `update bulk_files f set cancelled_at = coalesce(cancelled_at, now())
     from operations o
     where f.operation = $2 and o.id = $2 and o.account = $1 and o.state in ('accepted', 'running')`,
    [account, operation],
    'bulk.cancel',
  )
  return rowCount === 1
}

/** A request ends after two minutes; a file that is staged for ten belongs to a process that died. */
const staleMinutes = 10

/** Deletes staged files whose request ended without accepting them. @returns how many. */
export async function dropStaleFiles(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from bulk_files
     where operation is null and created_at < now() - make_interval(mins => $1)`,
    [staleMinutes],
    'bulk.drop-stale',
  )
  return rowCount
}

/**
 * The operation that is storing the same file in the same vault, if any. One that was cancelled, or whose vault
 * or one of whose sessions was cleared since, does not store the file any more: it is none.
 */
export async function findSameFileInFlight(
  query: Query,
  vault: string,
  requestHash: Buffer,
): Promise<string | undefined> {
  const { rows } = await query<{ operation: string }>(
    `select f.operation from bulk_files f
     join operations o on o.id = f.operation join vaults v on v.id = f.vault
     where f.vault = $1 and f.asked_hash = $2 and o.state in ('accepted', 'running')
       and f.cancelled_at is null and f.epoch = v.epoch
       and not exists (
         select 1 from sessions s
         where s.vault = f.vault and (s.session = f.session or s.session in
             (select unnest(sessions) from bulk_chunks where file = f.id))
           and s.epoch <> coalesce((f.session_epochs->>s.session)::int, 0))`,
    [vault, requestHash],
    'bulk.same',
  )
  return rows[0]?.operation
}

/** Assigns a staged file to an operation, in the transaction that accepts it. */
export async function claimFile(
  query: Query,
  file: string,
  {
    operation,
    askedHash,
    epoch,
  }: { operation: string; askedHash: Buffer } & Pick<AcceptedOperation, 'epoch'>,
): Promise<void> {
  await query(
    `update bulk_files f
     set operation = $2, asked_hash = $3, epoch = $4,
         lines = (select sum(lines) from bulk_chunks where file = $1),
         session_epochs = coalesce(
           (select jsonb_object_agg(s.session, s.epoch) from sessions s
            where s.vault = f.vault and (s.session = f.session or s.session in
              (select unnest(sessions) from bulk_chunks where file = $1))), '{}')
     where f.id = $1`,
    [file, operation, askedHash, epoch],
    'bulk.claim',
  )
}

/** The chunks of a file in the order of its tiers. */
export async function openChunkNumbers(query: Query, file: string): Promise<number[]> {
  const { rows } = await query<{ n: number }>(
    'select n from bulk_chunks where file = $1 and not settled order by tier, n',
    [file],
    'bulk.chunks',
  )
  return rows.map(({ n }) => n)
}

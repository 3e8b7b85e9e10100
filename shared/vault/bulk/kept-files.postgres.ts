import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * Stages bytes that came with an upload: its file, where the policy keeps it, or a picture. What gives the upload up deletes
 * them.
 */
export async function stageBytes(
  query: Query,
  upload: { id: string; vault: string; session: string | null; document: string },
  { id, name, parts }: { id: string; name: string; parts: readonly Uint8Array[] },
): Promise<void> {
  for (const [n, part] of parts.entries())
    await query(
      `insert into kept_files (id, n, name, bytes, vault, session, file_id, long_operation)
       values ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [id, n, name, part, upload.vault, upload.session ?? '', upload.document, upload.id],
      'kept-files.stage',
    )
}

/**
 * Deletes the version before of a kept file, in the transaction that ends an upload; one that has ended changes nothing.
 *
 * @param isKept whether the file of the upload takes its place, where one is staged
 */
export async function replaceKeptFile(
  query: Query,
  { id, vault, document = '' }: { id: string; vault: string; document?: string | undefined },
  isKept: boolean,
): Promise<void> {
  await query(
    `with upload as (select id from long_operations where id = $3), earlier as (
       delete from kept_files k using upload u
       where k.vault = $1 and k.file_id = $2 and k.operation is not null and k.id <> u.id)
     update kept_files set long_operation = null where id = $3 and $4`,
    [vault, document, id, isKept],
    'kept-files.replace',
  )
}

/** `size` is in bytes; `isStored`: all of its upload is stored, and before nobody is given it. */
export type KeptFile = Record<'id' | 'fileId' | 'name' | 'operation', string> & {
  size: number
  isStored: boolean
}

/** Files of a vault that are kept or will be: all of them, or those of one id. */
export async function listKeptFiles(
  query: Query,
  vault: string,
  fileId: string | null = null,
): Promise<KeptFile[]> {
  const { rows } = await query<KeptFile>(
    `select id, file_id as "fileId", name, operation, long_operation is null as "isStored",
            sum(length(bytes))::int as size
     from kept_files where vault = $1 and file_id = coalesce($2, file_id) and operation is not null
     group by id, file_id, name, operation, long_operation order by file_id`,
    [vault, fileId],
    'kept-files.list',
  )
  return rows
}

/** Reads bytes part by part. They end early where they are deleted meanwhile. */
export async function* readKeptBytes(
  query: Query,
  { vault, id }: { vault: string; id: string },
): AsyncGenerator<Buffer> {
  for (let n = 0; ; n++) {
    const { rows } = await query<{ bytes: Buffer }>(
      'select bytes from kept_files where vault = $1 and id = $2 and n = $3',
      [vault, id, n],
      'kept-files.read',
    )
    if (!rows[0]) return
    yield rows[0].bytes
  }
}

/** Deletes kept files of an epoch of a vault by their own ids: a version that is kept since stays. */
export async function dropKeptFiles(
  query: Query,
  { vault, epoch }: { vault: string; epoch: number },
  files: readonly KeptFile[],
): Promise<void> {
  await query(
    `delete from kept_files where vault = $1 and id = any($3::uuid[])
       and (select epoch from vaults where id = $1) = $2`,
    [vault, epoch, files.map(({ id }) => id)],
    'kept-files.drop',
  )
}

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { endianness } from 'node:os'
import { setImmediate as pause } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { IndexRef, SavedIndex } from '#shared/search/index/load-index.ts'

const partBytes = 1024 * 1024
/** Parts read by one statement. */
const partsMax = 8

/** Folders of `shared/search` whose code and data make what is saved. */
const makers = ['columns', 'index', 'languages', 'vectors', 'words']

let code: string | undefined

/** Changes with the code that makes words, vectors and columns of an index. */
function indexCode(): string {
  if (code) return code
  const hash = createHash('sha256').update(endianness())
  for (const maker of makers) {
    const folder = new URL(`../../../search/${maker}/`, import.meta.url)
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    const paths = files.filter(file => file.isFile()).map(file => `${file.parentPath}/${file.name}`)
    for (const path of paths.toSorted()) hash.update(readFileSync(path))
  }
  return (code = hash.digest('hex').slice(0, 16))
}

type PartRow = { revision: number; rows: number; size: number; checksum: number; bytes: Buffer }

const keyOf = ({ scope, session, space }: IndexRef) => [scope.vault, session ?? '', space]

const currentSql = `vault = $1 and session = $2 and space = $3 and epoch = $4 and code = $5`
const currentKeyOf = (ref: IndexRef) => [...keyOf(ref), ref.scope.epoch, indexCode()]

/** The saved index of a partition of its epoch, made by the same code; undefined when there is none. */
export async function findSavedIndex(query: Query, ref: IndexRef): Promise<SavedIndex | undefined> {
  const { rows: heads } = await query<Omit<PartRow, 'bytes' | 'checksum'>>(
    `select revision, rows, size from index_snapshots where ${currentSql} and part = 0`,
    currentKeyOf(ref),
    'index-snapshots.find',
  )
  const head = heads[0]
  return head && { ...head, read: () => readSavedIndex(query, ref, head) }
}

/** @returns undefined when it was replaced meanwhile, or is damaged. */
async function readSavedIndex(
  query: Query,
  ref: IndexRef,
  { revision, size }: Pick<PartRow, 'revision' | 'size'>,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  const count = Math.ceil(size / partBytes)
  for (let first = 0; first < count; first += partsMax) {
    const { rows } = await query<PartRow>(
      `select revision, size, checksum, bytes from index_snapshots
       where ${currentSql} and part >= $6 and part < $7 order by part`,
      [...currentKeyOf(ref), first, first + partsMax],
      'index-snapshots.read',
    )
    for (const part of rows) {
      if (part.revision !== revision || crc32(part.bytes) !== part.checksum) return undefined
      parts.push(part.bytes)
      await pause()
    }
  }
  const bytes = Buffer.concat(parts)
  return bytes.length === size ? bytes : undefined
}

const isOutdated = new Error('A memory was removed since')

/**
 * Saves an index in place of an older one of its partition; spaces that were not saved for a month go. Nothing is
 * saved where a memory has been removed since its revision: triggers delete what is saved of a vault in the transaction
 * that removes one, and either transaction waits for the other.
 *
 * @returns whether it was saved.
 */
export function saveIndex(
  postgres: Postgres,
  ref: IndexRef,
  { rows, bytes }: { rows: number; bytes: Buffer },
): Promise<boolean> {
  const { vault, epoch, revision } = ref.scope
  const key = keyOf(ref)
  const work = postgres.transaction(async ({ query }) => {
    const { rows: open } = await query(
      `select from (select pg_try_advisory_xact_lock(hashtextextended('index:' || $1::uuid, 0)) as taken) lock
       where taken and not exists (
         select from index_snapshots where ${currentSql} and part = 0 and revision >= $6)`,
      [...currentKeyOf(ref), revision],
    )
    if (open.length === 0) return false
    await query(
      `delete from index_snapshots where vault = $1
         and (session = $2 and space = $3 or saved_at < now() - interval '30 days')`,
      key,
    )
    for (let part = 0; part * partBytes < bytes.length; part++) {
      const slice = bytes.subarray(part * partBytes, (part + 1) * partBytes)
      await query(
        `insert into index_snapshots (vault, session, space, part, epoch, revision, code, rows, size, checksum, bytes)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
        [...key, part, epoch, revision, indexCode(), rows, bytes.length, crc32(slice), slice],
        'index-snapshots.insert',
      )
    }
    await query('select from vaults where id = $1 for share', [vault])
    // A statement of its own: it sees what the holder of the lock before has written.
    const { rows: standing } = await query(
      `select from vaults v where v.id = $1 and v.epoch = $2 and v.revision - $3 = (
         select count(*) from (select revision from vault_changes
           where vault = $1 and revision > $3
           group by revision having bool_and(not cleared and removed = '{}')) as change)`,
      [vault, epoch, revision],
    )
    if (standing.length === 0) throw isOutdated
    return true
  })
  return work.catch((error: unknown) => {
    if (error === isOutdated) return false
    throw error
  })
}

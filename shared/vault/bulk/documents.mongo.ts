import { metadataFromTerms } from '#shared/domain/metadata.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import {
  acknowledged,
  aggregateDocuments,
  epochFilter,
  findDocuments,
  idsFilter,
} from '#shared/storage/mongo/commands.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { fileIndex, idIndex } from '#shared/storage/mongo/indexes.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { dropKeptFiles, listKeptFiles } from '#shared/vault/bulk/kept-files.postgres.ts'
import { withoutClearedSessions } from '#shared/vault/base/vaults.postgres.ts'

type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/** The ids of the pieces of a document, of all sessions; without those that an upload has stored or found. */
export async function findPieces(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Scope,
  document: string,
  upload = '',
): Promise<string[]> {
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), 'file.id': { $eq: document }, 'file.by': { $ne: upload } },
    { projection: { _id: 1 }, hint: fileIndex },
  )
  return rows.map(({ _id }) => _id)
}

/** Marks pieces that a new version of their document has, too. */
export async function confirmPieces(
  { memories }: Pick<Mongo, 'memories'>,
  { document, operation, ...scope }: Scope & { document?: string | undefined; operation: string },
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await acknowledged(
    memories.updateMany(
      { ...idsFilter(scope, ids), 'file.id': document },
      { $set: { 'file.by': operation } },
      { hint: idIndex },
    ),
  )
}

/** Deletes those of these documents that are kept and of which no memory is left. */
export async function dropLoneFiles(
  { mongo, postgres: { query } }: Stores,
  scope: Scope,
  documents: readonly string[],
): Promise<void> {
  for (const document of new Set(documents)) {
    const files = await listKeptFiles(query, scope.vault, document)
    const kept = files.filter(({ isStored }) => isStored)
    if (kept.length > 0 && (await findPieces(mongo, scope, document)).length === 0)
      await dropKeptFiles(query, scope, kept)
  }
}

export type ListedDocument = {
  id: string
  session: string | null
  sessionEpoch: number
  name: string
  memories: number
  pages: number
  tokens: number
  storedAt: Date
}

const termOf = (name: string) => ({
  $first: {
    $filter: { input: '$metadata', cond: { $eq: [{ $indexOfBytes: ['$$this', `${name}=`] }, 0] } },
  },
})

/** All documents of a vault and its sessions. */
export async function listDocuments(
  { mongo, postgres }: Stores,
  scope: Scope,
): Promise<ListedDocument[]> {
  const rows = await aggregateDocuments<
    Omit<ListedDocument, 'id' | 'session'> & { _id: { id: string; session: string; epoch: number } }
  >(
    mongo.memories,
    [
      { $match: { ...epochFilter(scope), 'file.id': { $exists: true } } },
      {
        $group: {
          _id: { id: '$file.id', session: '$session', epoch: '$session_epoch' },
          name: { $max: termOf('file') },
          memories: { $sum: 1 },
          pages: { $addToSet: termOf('page') },
          tokens: { $sum: '$tokens' },
          storedAt: { $max: '$stored_at' },
        },
      },
      { $set: { pages: { $size: '$pages' } } },
    ],
    { hint: fileIndex },
  )
  const listed = rows.map(({ _id, name, ...row }) => ({
    ...row,
    id: _id.id,
    name: String(metadataFromTerms(name ? [name] : [])['file'] ?? _id.id),
    session: _id.session || null,
    sessionEpoch: _id.epoch,
  }))
  return withoutClearedSessions(postgres.query, scope, listed)
}

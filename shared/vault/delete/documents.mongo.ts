import { metadataFromTerms, type MetadataFilter } from '#shared/domain/metadata.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { aggregateDocuments, epochFilter, findDocuments } from '#shared/storage/mongo/commands.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { metadataCondition } from '#shared/storage/mongo/partition.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { withoutClearedSessions } from '#shared/vault/base/vaults.postgres.ts'
import { pieceKey } from '#shared/vault/bulk/upload-lines.ts'

const ofDocument = (id: string): MetadataFilter => [[`file_id=${JSON.stringify(id)}`]]

/** The ids of the pieces of a document that are not among these, of all sessions: those of an earlier version. */
export async function findStalePieces(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  id: string,
  { session, keys }: { session: string | null; keys: ReadonlySet<string> },
): Promise<string[]> {
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), ...metadataCondition(ofDocument(id)) },
    { projection: { session: 1, hash: 1, metadata: 1 }, hint: partitionIndex },
  )
  const isCurrent = ({ hash, metadata = [], ...row }: (typeof rows)[number]): boolean =>
    row.session === (session ?? '') && keys.has(pieceKey(hash.value(), metadataFromTerms(metadata)))
  return rows.filter(row => !isCurrent(row)).map(({ _id }) => _id)
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
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
): Promise<ListedDocument[]> {
  const rows = await aggregateDocuments<
    Omit<ListedDocument, 'id' | 'session'> & { _id: { id: string; session: string; epoch: number } }
  >(
    mongo.memories,
    [
      { $match: { ...epochFilter(scope), metadata: { $regex: '^file_id=' } } },
      {
        $group: {
          _id: { id: termOf('file_id'), session: '$session', epoch: '$session_epoch' },
          name: { $max: termOf('file') },
          memories: { $sum: 1 },
          pages: { $addToSet: termOf('page') },
          tokens: { $sum: '$tokens' },
          storedAt: { $max: '$stored_at' },
        },
      },
      { $set: { pages: { $size: '$pages' } } },
    ],
    { hint: partitionIndex },
  )
  const listed = rows.map(({ _id, name, ...row }) => {
    const { file_id: id = '', file } = metadataFromTerms([_id.id, ...(name ? [name] : [])])
    return {
      ...row,
      id: String(id),
      name: String(file ?? id),
      session: _id.session || null,
      sessionEpoch: _id.epoch,
    }
  })
  return withoutClearedSessions(postgres.query, scope, listed)
}

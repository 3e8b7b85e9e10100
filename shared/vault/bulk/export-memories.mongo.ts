import type { Condition } from '#shared/domain/condition.ts'
import { metadataFromTerms } from '#shared/domain/metadata.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { findEpoch, findSessionEpochs } from '#shared/vault/base/vaults.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { projectionOf, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { epochFilter } from '#shared/storage/mongo/commands.ts'

type ExportQuery = {
  /** One session, or the core vault with null; undefined is the whole vault. */
  session: string | null | undefined
  /** The model whose vectors are exported. */
  embedder: Embedder | undefined
  /** Without it all are exported. */
  condition?: Condition | undefined
}

/**
 * Streams all memories of a vault, or those that meet a condition, sources before the reflections that cover them.
 * Every memory that exists from beginning to end is included once.
 *
 * @throws Refusal `conflict` when the vault was cleared during the export; `unavailable`.
 */
export async function* exportMemories(
  { mongo, postgres }: Stores,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  { session, embedder, condition }: ExportQuery,
): AsyncGenerator<ExportedLine> {
  const sessionEpochs = await findSessionEpochs(postgres.query, scope)
  const part = { session, space: embedder?.space, condition }
  for await (const document of exportedDocuments(mongo, scope, part)) {
    const isCleared = document.session_epoch !== (sessionEpochs.get(document.session) ?? 0)
    // The export of a large vault takes minutes: memories may expire in the meantime.
    const isExpired =
      document.expires_at !== undefined && document.expires_at.getTime() <= Date.now()
    if (!isCleared && !isExpired) yield toExportedLine(document, embedder)
  }
  if ((await findEpoch(postgres.query, scope)) === scope.epoch) return
  throw new Refusal('conflict', 'The vault was cleared while it was read')
}

function toExportedLine(document: ExportedDocument, embedder: Embedder | undefined): ExportedLine {
  const { importance, speaker, covers, batch, sources, consolidated_by, provenance } = document
  const vector = embedder && document.vectors[embedder.space]
  return {
    id: document._id,
    tier: document.tier,
    role: document.role,
    content: document.text,
    timestamp: document.at.getTime(),
    session_id: document.session || null,
    ...(speaker !== undefined && { name: speaker }),
    ...(importance !== undefined && { importance }),
    ...(document.metadata && { metadata: metadataFromTerms(document.metadata) }),
    ...(document.piece && { piece: document.piece }),
    ...(document.file && { file_id: document.file.id }),
    ...(covers && { covers: { from: covers.from.toISOString(), to: covers.to.toISOString() } }),
    ...(batch !== undefined && { batch_id: batch }),
    ...(sources && { sources }),
    consolidated: document.consolidated,
    ...(document.feedback && { feedback: document.feedback }),
    ...(consolidated_by && { consolidated_by }),
    ...(provenance && {
      origin_key: provenance.origin_key,
      origin_id: provenance.source_id,
      transferred_at: provenance.transferred_at.toISOString(),
    }),
    ...(document.expires_at && { expires_at: document.expires_at.toISOString() }),
    ...(vector && {
      vector: {
        model: embedder.model,
        values: roundVector(vector.toFloat32Array()),
        space: embedder.space,
      },
    }),
  }
}

/** Nine digits identify every 32-bit float, and halve the length of the text. */
export const roundVector = (vector: Float32Array): number[] =>
  Array.from(vector, value => Number(value.toPrecision(9)))

type ExportSelection = {
  /** One session, or the core vault with null; undefined is the whole vault. */
  session: string | null | undefined
  /** The vault space whose vectors are exported. */
  space: string | undefined
  condition?: Condition | undefined
}

/** The exported fields of a memory; `vectors` has at most the requested one. */
type ExportedDocument = Omit<MemoryDocument, 'hash' | 'stored_at' | 'tokens' | 'version'>

/** A batch with vectors stays below 2 MB; without vectors larger batches are faster. */
const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams the memories of a vault in the order of the partition index: core vault, then sessions; by tier, time
 * and id. The cursor is closed when the consumer stops early.
 */
async function* exportedDocuments(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  { session, space, condition }: ExportSelection,
): AsyncGenerator<ExportedDocument> {
  const cursor = memories.find(
    {
      ...epochFilter(scope),
      ...(session !== undefined && { session: { $eq: session ?? '' } }),
      ...conditionFilter(condition),
    },
    {
      projection: exportProjection(space),
      sort: { session: 1, tier: 1, at: 1, _id: 1 },
      hint: partitionIndex,
      batchSize: space === undefined ? batchSizes.without : batchSizes.withVectors,
    },
  )
  try {
    for await (const document of cursor) {
      if (document.tomb_at === undefined) yield { ...document, vectors: document.vectors ?? {} }
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  } finally {
    await cursor.close()
  }
}

const exportedFields = projectionOf(
  'vault epoch session session_epoch tier role text at importance speaker metadata piece ' +
    'file operation consolidated feedback batch sources covers consolidated_by provenance ' +
    'expires_at tomb_at',
)

const exportProjection = (space: string | undefined) => ({
  ...exportedFields,
  ...(space !== undefined && { [`vectors.${space}`]: 1 }),
})

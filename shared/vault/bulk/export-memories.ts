import { metadataFromTerms } from '#shared/domain/metadata.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { exportedDocuments, type ExportedDocument } from '#shared/vault/bulk/export.mongo.ts'
import { findEpoch, findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

export type ExportQuery = {
  /** One session, or the core vault with null; undefined is the whole vault. */
  session: string | null | undefined
  /** The model whose vectors are exported. */
  embedder: Embedder | undefined
}

/**
 * All memories of a vault, sources before the reflections that cover them. A memory that is stored during
 * the export may be included or not; every memory that exists from beginning to end is included once.
 *
 * @throws Refusal `conflict` when the vault was cleared during the export, which is then incomplete;
 *   `unavailable` when a store is out of reach.
 */
export async function* exportMemories(
  { mongo, postgres }: Stores,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  { session, embedder }: ExportQuery,
): AsyncGenerator<ExportedLine> {
  const sessionEpochs = await findSessionEpochs(postgres.query, scope)
  const part = { session, space: embedder?.space }
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
    ...(covers && { covers: { from: covers.from.toISOString(), to: covers.to.toISOString() } }),
    ...(batch !== undefined && { batch_id: batch }),
    ...(sources && { sources }),
    consolidated: document.consolidated,
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

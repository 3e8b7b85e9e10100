import type { ExportedLine } from '#shared/domain/file-types.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { exportedDocuments, type ExportedDocument } from '#shared/vault/bulk/export.mongo.ts'
import { findEpoch, findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

export type ExportQuery = {
  /** One session, or the core vault with null; undefined is all of it. */
  session: string | null | undefined
  /** The model whose vectors come along. */
  embedder: Embedder | undefined
}

/**
 * Everything a vault holds, a memory at a time, sources before what covers them. What is stored
 * meanwhile may be in it or not; every memory that is there from beginning to end is, once.
 *
 * @throws Refusal `conflict` when the vault is cleared meanwhile: what was read is not the whole.
 * @throws Refusal `unavailable` when a store is out of reach.
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
    // A long vault is told for minutes: what has come to its end meanwhile is not told any more.
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
      vector: { model: embedder.model, values: roundVector(vector.toFloat32Array()) },
    }),
  }
}

/** Nine digits are all a 32-bit float holds: the same float is read back, from half the text. */
export const roundVector = (vector: Float32Array): number[] =>
  Array.from(vector, value => Number(value.toPrecision(9)))

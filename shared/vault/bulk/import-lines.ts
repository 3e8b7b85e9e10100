import type { ExportedLine, NumberedLine } from '#shared/domain/file-types.ts'
import {
  importedMemoryId,
  findLiveIds,
  type IdCandidates,
  type BulkItem,
} from '#shared/vault/bulk/plan-items.ts'
import type { LineReader } from '#shared/vault/bulk/stage-file.ts'
import {
  expiryForLine,
  isLineExpired,
  acceptedSessionEpoch,
  resolveLine,
  type LineWithMoments,
} from '#shared/vault/bulk/upload-lines.ts'
import { hasForms } from '#shared/models/space-embedders.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { RestoredFields } from '#shared/vault/bulk/memories.mongo.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import { parseStart, type Moment } from '#shared/core/dates.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** How far the length of a vector may be from 1: the rounding error of six decimal places. */
const lengthTolerance = 1e-3

/** Reads lines of an export; of two lines with one id the first counts. */
export const createImportReader = (
  redaction: LineReader['redaction'],
  check: (line: unknown) => unknown,
): LineReader => ({
  redaction,
  check(value) {
    const line = resolveLine(check(value) as LineWithMoments) as NumberedLine<ExportedLine>
    requireTierFields(line)
    return line
  },
  keyOf: line => (line as NumberedLine<ExportedLine>).id.toLowerCase(),
})

/**
 * Refuses a raw memory with fields of reflections, and a reflection without importance or in a session.
 *
 * @throws Refusal `invalid`.
 */
function requireTierFields(line: ExportedLine): void {
  if (line.tier === 1) {
    const stray = (['importance', 'covers', 'batch_id', 'sources'] as const).find(
      field => line[field] !== undefined,
    )
    if (stray) throw new Refusal('invalid', `${stray} belongs to reflections, not to tier 1`)
    return
  }
  if (line.importance === undefined) {
    throw new Refusal('invalid', `importance is required on tier ${line.tier}`)
  }
  if (line.session_id !== null) {
    throw new Refusal('invalid', `session_id must be null on tier ${line.tier}`)
  }
}

/**
 * The ids an imported line may get: its own when it is free, else ids that depend on vault and line alone, so
 * that a second import finds what the first one stored.
 */
export const importIdCandidates = (
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  line: NumberedLine<ExportedLine>,
): IdCandidates => ({
  idAt: generation => importedMemoryId(scope, line.id, generation),
  vaultOwnedFrom: 1,
  alreadyPresent: (line.again ?? false) || isLineExpired(line),
})

/** The memories of a chunk of an import; their sources are replaced by the ids they have in this vault. */
export async function buildImportItems(
  backend: Stores,
  chunk: BulkChunk,
  embedder: Embedder,
): Promise<BulkItem[]> {
  const lines = chunk.content as NumberedLine<ExportedLine>[]
  const sources = lines.flatMap(line => line.sources ?? [])
  const idsInVault = await findLiveIds(backend, chunk, sources, (id, generation) =>
    importedMemoryId(chunk, id, generation),
  )
  return mapInSlices(lines, async (line): Promise<BulkItem> => {
    const vector = reusableVector(line, embedder)
    return {
      ...importIdCandidates(chunk, line),
      ...(vector && { vector }),
      memory: {
        vault: chunk.vault,
        epoch: chunk.epoch,
        session: line.session_id,
        sessionEpoch: acceptedSessionEpoch(chunk, line.session_id),
        tier: line.tier,
        role: line.role,
        text: line.content,
        at: line.timestamp,
        tokens: await countTokensInSlices(line.content),
        operation: chunk.operation,
        ...(line.importance !== undefined && { importance: line.importance }),
        ...(line.name !== undefined && { speaker: line.name }),
        ...(line.metadata && { metadata: line.metadata }),
        ...(line.piece && {
          piece: { message: line.piece.message.toLowerCase(), number: line.piece.number },
        }),
        ...expiryForLine(line, chunk),
        restored: toRestored(line, idsInVault, chunk),
      },
    }
  })
}

function toRestored(
  line: ExportedLine,
  idsInVault: ReadonlyMap<string, string>,
  { operation }: Pick<BulkChunk, 'operation'>,
): RestoredFields {
  const { consolidated = false, feedback, consolidated_by, batch_id, sources, covers } = line
  return {
    consolidated,
    ...(feedback && { feedback }),
    ...(consolidated_by && { consolidated_by }),
    ...(line.file_id !== undefined && { file: { id: line.file_id, by: operation } }),
    ...(batch_id !== undefined && { batch: batch_id }),
    ...(sources && { sources: sources.map(id => idsInVault.get(id) ?? id.toLowerCase()) }),
    ...(covers && { covers: { from: dateOf(covers.from), to: dateOf(covers.to) } }),
    ...(line.origin_key !== undefined && {
      provenance: {
        origin_key: line.origin_key,
        transferred_at: dateOf(line.transferred_at ?? line.timestamp),
        source_id: line.origin_id ?? line.id,
      },
    }),
  }
}

const dateOf = (moment: Moment): Date => new Date(parseStart(moment))

/** The vector of the line, when it is of the space that the import writes to. */
function reusableVector({ vector }: ExportedLine, embedder: Embedder): Float32Array | undefined {
  if (vector?.model !== embedder.model) return undefined
  // A line without a space is of a model that gets queries and texts alike.
  if (vector.space === undefined ? hasForms(embedder.space) : vector.space !== embedder.space)
    return undefined
  if (vector.values.length !== embedder.dimension) return undefined
  const values = Float32Array.from(vector.values)
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  return Math.abs(length - 1) <= lengthTolerance ? values : undefined
}

import { embeddingsRefused, embeddingsSplit } from '#shared/core/metrics.ts'
import type { BatchLimits } from '#shared/models/batch-limits.ts'
import { EmbeddingRefusal } from '#shared/models/embeddings-call.ts'
import { isPassingStatus, plainText } from '#shared/models/model-refusal.ts'
import { splitText, weightedMeanVector } from '#shared/models/split-text.ts'

/** A text, or a part of one that was too long. */
type Part = { text: string; vector: Float32Array | EmbeddingRefusal }

/** Refusals of short parts that a text may still cost; at 0 the rest of it is not cut any more. */
type Budget = { refusals: number }

/** Every model takes so many bytes: a shorter text is refused for its content. */
const refusedBytesMax = 200

/**
 * Embeds each text, or returns why the model has no vector for it. Refused batches are sent again in halves; a text that
 * is refused alone is sent in shorter and shorter parts and gets their weighted mean, so that all of it counts.
 *
 * @throws EmbeddingRefusal when the model does not answer, or refuses a plain text too.
 */
export async function embedInBatches(
  batchCall: {
    /** Vectors of unit length. */
    call(inputs: readonly string[]): Promise<Float32Array[]>
    /** Embeds a plain text, to see whether the model answers; undefined for a caller without time for that. */
    probe: (() => Promise<unknown>) | undefined
    limits: BatchLimits
  },
  texts: readonly string[],
): Promise<(Float32Array | EmbeddingRefusal)[]> {
  const { call, probe, limits } = batchCall
  let plainTextCall: Promise<unknown> | undefined
  /** @throws when the model refuses a plain text too, or does not answer */
  const keepRefusal = async (refused: readonly string[], refusal: EmbeddingRefusal) => {
    // The model refused the inputs: a plain text, sent once, shows whether it refuses everything. It was silent or
    // overloaded: the probe shows whether it answers.
    await (refusal.pieces === undefined ? probe?.() : (plainTextCall ??= call([plainText])))
    return refused.map((text): Part[] => [{ text, vector: refusal }])
  }
  /**
   * The number of pieces to cut a batch into. A batch without an answer is cut where a plain text gets one: a server may
   * fail at an input, and a gateway at a large call.
   */
  const pieceCountOrThrow = async (
    batch: readonly string[],
    refusal: EmbeddingRefusal,
  ): Promise<number> => {
    if (refusal.pieces !== undefined) return refusal.pieces
    const isPassing = isPassingStatus(refusal.status ?? 0)
    if (!probe || refusal.isPermanent || (isPassing && batch.length === 1)) throw refusal
    await probe()
    return 2
  }

  const embedAll = async (inputs: readonly string[], budget?: Budget): Promise<Part[][]> => {
    const chunks = inputs.map(input => limits.split(input))
    const flat = chunks.flat()
    const parts: Part[][] = []
    for (const batch of limits.plan(flat)) {
      const texts = batch.map(index => flat[index]!)
      const partsOfTexts = await embedBatch(texts, budget)
      batch.forEach((index, n) => (parts[index] = partsOfTexts[n]!))
    }
    let next = 0
    return chunks.map(({ length }) => parts.slice(next, (next += length)).flat())
  }

  const embedBatch = async (batch: readonly string[], budget?: Budget): Promise<Part[][]> => {
    try {
      const vectors = await call(batch)
      limits.accept(batch)
      return batch.map((text, n) => [{ text, vector: vectors[n]! }])
    } catch (error) {
      if (!(error instanceof EmbeddingRefusal)) throw error
      const count = await pieceCountOrThrow(batch, error)
      if (budget?.refusals === 0) return keepRefusal(batch, error)
      if (batch.length === 1) return embedShorter(batch[0]!, error, budget)
      const parts: Part[][] = []
      const size = Math.ceil(batch.length / count)
      for (let start = 0; start < batch.length; start += size) {
        parts.push(...(await embedAll(batch.slice(start, start + size), budget)))
      }
      if (parts.every(isWhole)) limits.refuse(batch)
      return parts
    }
  }

  const embedShorter = async (
    text: string,
    refusal: EmbeddingRefusal,
    budget: Budget = { refusals: 4 },
  ): Promise<Part[][]> => {
    const bytes = Buffer.byteLength(text)
    if (bytes < refusedBytesMax) {
      budget.refusals--
      return keepRefusal([text], refusal)
    }
    const parts = (await embedAll(splitText(text, Math.ceil(bytes / 2)), budget)).flat()
    if (parts.every(isEmbedded)) limits.refuseInput(text)
    return [parts]
  }

  return (await embedAll(texts)).map(toVector)
}

const isEmbedded = ({ vector }: Part): boolean => vector instanceof Float32Array
const isWhole = (parts: readonly Part[]): boolean => parts.length === 1 && isEmbedded(parts[0]!)

/** The mean of the parts that have a vector; a refusal where none has one. */
function toVector(parts: readonly Part[]): Float32Array | EmbeddingRefusal {
  const embedded = parts.filter((part): part is Part & { vector: Float32Array } => isEmbedded(part))
  if (embedded.length === 0) {
    embeddingsRefused.inc()
    return parts[0]!.vector
  }
  if (parts.length > 1) embeddingsSplit.inc()
  return weightedMeanVector(
    embedded.map(({ vector }) => vector),
    embedded.map(({ text }) => text),
  )
}

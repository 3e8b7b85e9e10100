import { refusal } from '#shared/core/refusal.ts'
import { emptyText } from '#shared/core/refusals.ts'
import { type SharedMemory, reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'
import { parseTags } from '#shared/org/base/normalize.ts'
import type { ChangeOrigin, SharedMemoryBackend } from '#shared/org/memories/shared-change.ts'
import { addSharedMemories } from '#shared/org/memories/write-shared-memories.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { parseMetadata, type Metadata } from '#shared/domain/metadata.ts'
import { withSaidOrigin } from '#shared/domain/origin.ts'

export type Seed = {
  text: string
  tags: readonly string[]
  confidence: number
  metadata?: Metadata
}

type SeedInput = {
  text: string
  tags?: readonly string[]
  confidence?: number
  metadata?: Readonly<Record<string, unknown>>
}

/**
 * Reads the memories of a request: one, or several.
 *
 * @throws Refusal `invalid` for both forms, for neither, for a text without words, and as `parseTags` and
 *   `parseMetadata`.
 */
export function parseSeeds({
  items,
  ...single
}: Partial<SeedInput> & { items?: SeedInput[] }): Seed[] {
  const { text } = single
  const isSingle = Object.values(single).some(value => value !== undefined)
  if (items ? isSingle : text === undefined) throw refusal('invalid', 'textOrItems')
  if (text?.trim() === '') throw emptyText()
  if (!items) return [toSeed(single as SeedInput, 'metadata')]
  return items.map((item, index) => toSeed(item, `items[${index}].metadata`))
}

function toSeed(
  { text, tags = [], confidence = 1, metadata: given }: SeedInput,
  field: string,
): Seed {
  const metadata = withSaidOrigin('seed', parseMetadata(given, field))
  return { text, tags: parseTags(tags), confidence, metadata }
}

/**
 * Seeds memories in an admin's own words. They need no review, unless their confidence is below the threshold.
 * Those that cannot be embedded are reported, the others stored. A second run under the same operation stores
 * nothing twice.
 *
 * @throws Refusal as `addSharedMemories`.
 */
export async function seedSharedMemories(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, seeds }: ChangeOrigin & { seeds: readonly Seed[] },
): Promise<{ added: SharedMemory[]; errors: { index: number; error: string }[] }> {
  // Equal for every run: the first 48 bits of the operation are its time.
  const acquiredAt = parseInt(operation.replaceAll('-', '').slice(0, 12), 16)
  const items = seeds.map(seed => ({
    ...seed,
    author: actor,
    reviewed: seed.confidence >= reviewThreshold,
    acquiredAt,
  }))
  const { added, failed } = await addSharedMemories(backend, orgVault, { operation, actor, items })
  const errors = failed.map(({ index, error }) => ({ index, error: error.message }))
  return { added: added.map(({ memory }) => memory), errors }
}

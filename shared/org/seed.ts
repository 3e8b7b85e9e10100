import { Refusal } from '#shared/core/errors.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { reviewThreshold } from '#shared/org/review.ts'
import { tagsAsked } from '#shared/org/parse-params.ts'
import type { By, Changing } from '#shared/org/shared-change.ts'
import { addShared } from '#shared/org/shared-memory.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'

export type Seed = { text: string; tags: readonly string[]; confidence: number }

type Given = { text: string; tags?: readonly string[]; confidence?: number }

/**
 * What a body asks to be seeded: one memory, or several.
 *
 * @throws Refusal `invalid` for both, for neither, for one that holds no words, and for tags that are none.
 */
export function seedsOf({ items, ...single }: Partial<Given> & { items?: Given[] }): Seed[] {
  const { text } = single
  const isSingle = Object.values(single).some(value => value !== undefined)
  if (items ? isSingle : text === undefined) {
    throw new Refusal(
      'invalid',
      'Send either text or items',
      'text with tags seeds one memory, items several: [{"text": "…", "tags": ["…"]}]',
    )
  }
  if (text?.trim() === '') throw new Refusal('invalid', 'text holds no words')
  return (items ?? [single as Given]).map(item => ({
    text: item.text,
    tags: tagsAsked(item.tags ?? []),
    confidence: item.confidence ?? 1,
  }))
}

export type Seeded = { added: SharedMemory[]; errors: { index: number; error: string }[] }

/**
 * Seeds memories of an admin's own words. They need no review, unless the admin says to be less sure of
 * the tags than the threshold. Those that cannot be embedded are told, the others stored. A second run
 * under the same operation stores nothing twice.
 *
 * @throws Refusal `upstream` when none could be embedded; `unavailable` when a store is out of reach.
 */
export async function seedShared(
  backend: Changing,
  place: OrgVault,
  { operation, actor, seeds }: By & { seeds: readonly Seed[] },
): Promise<Seeded> {
  // The same when it is asked again: the first 48 bits of the operation are the time it began.
  const acquiredAt = parseInt(operation.replaceAll('-', '').slice(0, 12), 16)
  const items = seeds.map(seed => ({
    ...seed,
    author: actor,
    reviewed: seed.confidence >= reviewThreshold,
    acquiredAt,
  }))
  const { added, failed } = await addShared(backend, place, { operation, actor, items })
  const errors = failed.map(({ index, error }) => ({ index, error: error.message }))
  return { added: added.map(({ memory }) => memory), errors }
}

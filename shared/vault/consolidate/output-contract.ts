import { readTextFile } from '#shared/core/text-file.ts'
import type { TargetTier } from '#shared/domain/lease.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'

/** Rises only when the wording of the instructions or the meaning of an entry changes. */
const version = 2

export const textMax = 8_000
const entriesMax = 100

/** A text of `instructions/`. */
const readInstructions = (name: string): string =>
  readTextFile(new URL(`instructions/${name}.txt`, import.meta.url), { entriesMax })

const commonInstructions = readInstructions('all-tiers')
const tierInstructions: Record<TargetTier, string> = {
  2: readInstructions('tier-2'),
  3: readInstructions('tier-3'),
}

/** The contract of a batch whose reflections go to a tier. */
export const reflectionContract = (
  targetTier: TargetTier,
): {
  version: number
  targetTier: TargetTier
  /** For the model, verbatim. */
  instructions: string
  entriesMin: number
  entriesMax: number
  entriesRecommended: string
} => ({
  version,
  targetTier,
  instructions: `${tierInstructions[targetTier]}\n\n${commonInstructions}`,
  entriesMin: 1,
  entriesMax,
  entriesRecommended: '5-10',
})

/** The sentence for older clients; it never changes. */
export const tierDefinitions: Record<TargetTier, string> = {
  2: 'Reflections capture what happened: summarize the raw memories into standalone statements of events, decisions, preferences and facts.',
  3: 'High-level reflections capture what it means: derive patterns, values, goals and lasting insights from the reflections.',
}

/** What the contract keeps out of a reflection's text: ids, and the rating that has a field of its own. */
const foreign: { what: string; pattern: RegExp }[] = [
  { what: 'an id', pattern: /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/i },
  {
    what: 'an importance number',
    pattern: /\bimportance["']?(?:\s*[:=])?\s*(?:10|[1-9])(?=\s*(?:[)\]},.;/]|$))/im,
  },
]

/**
 * Refuses reflections that are no clean standalone prose; they are not mended, and the batch stays leased.
 *
 * @throws Refusal `invalid` that names the entry, and what stands in it.
 */
export function requireStandaloneProse(entries: readonly { text: string }[]): void {
  for (const [index, { text }] of entries.entries()) {
    if (text.trim() === '') throw new Refusal('invalid', `entries[${index}].text holds no words`)
    const found = foreign.find(({ pattern }) => pattern.test(text))
    if (!found) continue
    throw refusal('invalid', 'entryHoldsIds', { index, what: found.what })
  }
}

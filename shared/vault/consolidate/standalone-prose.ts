import { Refusal } from '#shared/core/errors.ts'

/** What the contract keeps out of a reflection's text: ids, and the rating that has a field of its own. */
const foreign: { what: string; pattern: RegExp }[] = [
  { what: 'an id', pattern: /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/i },
  {
    what: 'an importance number',
    pattern: /\bimportance["']?(?:\s*[:=])?\s*(?:10|[1-9])(?=\s*(?:[)\]},.;/]|$))/im,
  },
]

/**
 * Refuses reflections that are no clean standalone prose. They are not mended: what a model meant with an id that is
 * taken out, nobody knows, and the batch stays leased for a better answer.
 *
 * @throws Refusal `invalid` that names the entry, and what stands in it.
 */
export function requireStandaloneProse(entries: readonly { text: string }[]): void {
  for (const [index, { text }] of entries.entries()) {
    if (text.trim() === '') throw new Refusal('invalid', `entries[${index}].text holds no words`)
    const found = foreign.find(({ pattern }) => pattern.test(text))
    if (!found) continue
    throw new Refusal(
      'invalid',
      `entries[${index}].text holds ${found.what}`,
      'Write prose that stands for itself, without ids; how much it matters belongs in importance',
    )
  }
}

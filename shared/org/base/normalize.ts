import { Refusal } from '#shared/core/errors.ts'
import { sortUniqueTags } from '#shared/domain/tags.ts'

/**
 * Trims a name or a label and composes its accents (NFC).
 *
 * @param field its name in the request
 * @throws Refusal `invalid` when nothing is left.
 */
export function normalizeName(text: string, field: string): string {
  const name = text.normalize('NFC').trim()
  if (name !== '') return name
  throw new Refusal('invalid', `${field} must not be blank`)
}

/** Normalizes labels, each once; `*` is allowed. @throws Refusal `invalid` for a blank one. */
export const normalizeLabels = (labels: readonly string[]): string[] => [
  ...new Set(labels.map(label => normalizeName(label, 'A label of allowed_tags'))),
]

/** Normalizes the name of a member, an author or an actor: emails to lower case, other names unchanged. */
export function normalizeMemberId(text: string): string {
  const name = text.normalize('NFC').trim()
  return isEmail(name) ? name.toLowerCase() : name
}

export const isEmail = (name: string): boolean => /^[^\s@]+@[^\s@]+$/.test(name)

/**
 * Normalizes tags from a request. They need not be defined: a tag that no role allows hides a memory.
 *
 * @throws Refusal `invalid` for an empty one, and for `*`.
 */
export function parseTags(tags: readonly string[]): string[] {
  const trimmed = tags.map(tag => tag.normalize('NFC').trim())
  if (trimmed.includes('')) throw new Refusal('invalid', 'tags holds an empty tag')
  if (trimmed.includes('*')) {
    throw new Refusal('invalid', '* is not a tag', 'Roles allow * to see every tag there is')
  }
  return sortUniqueTags(trimmed)
}

import { Refusal } from '#shared/core/errors.ts'

/**
 * A name or a label as somebody wrote it. White space around it says nothing, nor does the way its
 * accents are composed: two that look the same are the same.
 *
 * @param field what it is called where it was sent
 * @throws Refusal `invalid` when nothing is left.
 */
export function normalizeName(text: string, field: string): string {
  const name = text.normalize('NFC').trim()
  if (name !== '') return name
  throw new Refusal('invalid', `${field} must not be blank`)
}

/**
 * Labels that a role allows, `*` among them or not, each once.
 *
 * @throws Refusal `invalid` for a blank one.
 */
export const normalizeLabels = (labels: readonly string[]): string[] => [
  ...new Set(labels.map(label => normalizeName(label, 'A label of allowed_tags'))),
]

/**
 * Who is meant by a name, as a member, an author or an actor is called. Mail knows no upper case; every
 * other name is another one when a letter differs.
 */
export function normalizeMemberId(given: string): string {
  const name = given.normalize('NFC').trim()
  return isEmail(name) ? name.toLowerCase() : name
}

export const isEmail = (name: string): boolean => /^[^\s@]+@[^\s@]+$/.test(name)

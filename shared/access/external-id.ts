import { Refusal } from '#shared/core/errors.ts'

/** In code points, after normalization. */
const lengthMax = 256

/** What programs write where a value is missing: all their users would share one vault. */
const placeholders = new Set(['undefined', 'null', 'none', 'nan', '[object object]'])

/**
 * The id by which a product names its user, in Unicode form NFC and without white space around it: ids that
 * look the same are the same.
 *
 * @param field names it in errors
 * @throws Refusal `invalid` for an id that is empty, too long, damaged, or a placeholder of a missing one.
 */
export function parseExternalId(text: string, field: string): string {
  const id = text.normalize('NFC').trim()
  if (id === '') throw refusal(`${field} is empty`)
  if (Array.from(id).length > lengthMax)
    throw refusal(`${field} must have at most ${lengthMax} characters`)
  // A damaged character stands for several: two ids could become one.
  if (/[\p{Cc}\p{Zl}\p{Zp}\uFFFD]/u.test(id) || !id.isWellFormed())
    throw refusal(`${field} must be text in UTF-8 without control characters`)
  if (placeholders.has(id.toLowerCase()))
    throw refusal(`${field} is "${id}", which programs write for a missing value`)
  return id
}

const refusal = (message: string): Refusal =>
  new Refusal(
    'invalid',
    message,
    'Send the id that your product has for the user, 1 to 256 characters',
  )

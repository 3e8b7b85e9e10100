import { describeValue } from '#shared/core/describe-value.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { JsonSchema, SchemaWalk } from '#shared/core/schema-walk.ts'

/** A copy of query parameters in which `1` and `0` of booleans are `true` and `false`. */
export function readBooleans<Values extends Record<string, unknown>>(
  walk: SchemaWalk,
  schema: JsonSchema,
  values: Values,
): Values {
  const read: Record<string, unknown> = { ...values }
  const digits = Object.keys(read).filter(name => read[name] === '1' || read[name] === '0')
  if (digits.length === 0) return read as Values
  const properties = walk.properties(schema)
  for (const name of digits) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property && walk.allows(property, 'boolean'))
      read[name] = read[name] === '1' ? 'true' : 'false'
  }
  return read as Values
}

/**
 * Refuses what Ajv reads as a number and no person would: `Infinity`, which passes every bound, and `0x10`.
 *
 * @throws Refusal `invalid`.
 */
export function requirePlainNumbers(sent: object, coerced: object): void {
  for (const [field, text] of Object.entries(sent)) {
    if (typeof text !== 'string') continue
    if (typeof (coerced as Record<string, unknown>)[field] !== 'number') continue
    if (/^-?\d{1,20}(?:\.\d{1,20})?$/.test(text)) continue
    throw new Refusal('invalid', `${field} must be a plain number, not ${describeValue(text)}`)
  }
}

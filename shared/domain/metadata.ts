import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { tooManyFields } from '#shared/core/refusals.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

export type MetadataValue = string | number | boolean

/** Fields of a client: the agent, the run, a source, a topic. */
export type Metadata = Readonly<Record<string, MetadataValue>>

export const fieldsMax = 16
const keyMax = 64
const textMax = 256

/**
 * Checks metadata to be stored.
 *
 * @param field names it in errors
 * @returns texts in Unicode form NFC; undefined without fields
 * @throws Refusal `invalid` for more than 16 fields, an invalid key or value, and a number beyond 2^53.
 */
export function parseMetadata(
  given: Readonly<Record<string, unknown>> | undefined,
  field = 'metadata',
): Metadata | undefined {
  const entries = readMetadataEntries(given, field)
  if (entries.length === 0) return undefined
  return Object.fromEntries(
    entries.map(([key, value]) => [key, parseMetadataValue(value, `${field}.${key}`)]),
  )
}

/** @throws Refusal `invalid` when the text is no JSON object. */
export function parseMetadataObject(text: string, field: string): Record<string, unknown> {
  try {
    const value = sanitizeJson(JSON.parse(text))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Refused below.
  }
  throw new Refusal('invalid', `${field} must be a JSON object`, 'Such as {"agent_id":"planner"}')
}

/** Writes metadata as sorted terms to store and compare: `agent_id="planner"`. */
export const metadataTerms = (metadata: Metadata): string[] =>
  Object.entries(metadata)
    .map(([key, value]) => termOf(key, value))
    .toSorted()

export const metadataFromTerms = (terms: readonly string[]): Metadata =>
  Object.fromEntries(
    terms.map(term => {
      const end = term.indexOf('=')
      return [term.slice(0, end), JSON.parse(term.slice(end + 1)) as MetadataValue]
    }),
  )

const termOf = (key: string, value: MetadataValue): string => `${key}=${JSON.stringify(value)}`

/** @throws Refusal `invalid` for more than 16 fields and for a name that none may have. */
export function readMetadataEntries(
  given: Readonly<Record<string, unknown>> | undefined,
  field: string,
): [string, unknown][] {
  const entries = Object.entries(given ?? {})
  if (entries.length > fieldsMax) {
    throw tooManyFields(`${field} has more than ${fieldsMax} fields`)
  }
  const stray = entries.find(([key]) => !/^[A-Za-z0-9._-]{1,64}$/.test(key))
  if (!stray) return entries
  throw refusal('invalid', 'badMetadataName', { field, keyMax })
}

/** @throws Refusal `invalid` for what metadata cannot have. */
export function parseMetadataValue(value: unknown, field: string): MetadataValue {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return parseNumber(value, field)
  if (typeof value !== 'string')
    throw new Refusal('invalid', `${field} must be a text, a number or a boolean`, valueHint)
  const text = value.normalize('NFC')
  if (Array.from(text).length <= textMax) return text
  throw new Refusal('invalid', `${field} has more than ${textMax} characters`, valueHint)
}

/**
 * Refuses numbers beyond 2^53, which the JSON parser has rounded: two ids of 64 bits would be one, and a deletion by the
 * one would delete the other. `1e300` cannot be distinguished from the 301 digits of an id.
 */
function parseNumber(value: number, field: string): number {
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value === 0 ? 0 : value
  throw refusal('invalid', 'metadataNumberTooLarge', { field })
}

export const valueHint = `Values are texts of at most ${textMax} characters, numbers, true and false`

import { contractDocument } from '#api/contract/document.ts'
import { createNameMatcher, kindAt, parseValue } from '#api/proxy/json/walk.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import type { Schema } from '#shared/core/shape.ts'

/** Adds the member between these offsets to `fields` when the contract gives it a type. */
export type ReadTypedField = (
  body: Buffer,
  fields: Record<string, unknown>,
  member: { name: number; nameEnd: number; value: number; end: number },
) => void

/**
 * Reads the few members of a body that its shape constrains, so that the whole body need not be parsed
 * once more to be checked. Of members with the same name the last one counts.
 *
 * @param definition the name of that shape in the contract
 */
export function createTypedFieldReader(definition: string): ReadTypedField {
  const properties = contractDocument.$defs[definition]!.properties as Record<string, Schema>
  const matchName = createNameMatcher(Object.keys(properties))
  return (body, fields, { name, nameEnd, value, end }) => {
    const property = matchName(body, name, nameEnd)
    if (property === undefined) return
    fields[property] = readTypedValue(body, value, end, properties[property]!)
  }
}

/** Shapes leave the elements of lists open, and the members of objects too where no `$ref` types them. */
function readTypedValue(body: Buffer, at: number, end: number, property: Schema): unknown {
  const kind = kindAt(body, at)
  if (kind === 'array') return []
  if (kind === 'object' && !('anyOf' in property)) return {}
  return sanitizeJson(parseValue(body, at, end))
}

import { parseTypeCell } from '#scripts/contract/type-cell.ts'
import { specificationError, type FieldRow } from '#scripts/contract/parse-markdown.ts'
import { shape, type Schema } from '#shared/core/shape.ts'

/**
 * The object schema of a table. Rows such as `metrics.total_ms` define a nested object, which is
 * required if one of its fields is.
 *
 * @param open whether additional fields are allowed
 * @throws Error with the row and column of a fault.
 */
export function buildObjectSchema(
  rows: readonly FieldRow[],
  open: boolean,
  names: ReadonlySet<string>,
): Schema {
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  const fields = Map.groupBy(rows, ({ field }) => field.split('.', 1)[0]!)
  for (const [name, group] of fields) {
    const [row] = group
    const place = { ...row!.position, column: 'Field' }
    if (!/^[A-Za-z][A-Za-z0-9_-]*$/.test(name))
      throw specificationError(place, `${name} is no field name`)
    const nested = group.filter(({ field }) => field !== name)
    const own = group.filter(({ field }) => field === name)
    if (own.length > 1)
      throw specificationError(
        { ...own[1]!.position, column: 'Field' },
        `${name} is described twice`,
      )
    if (nested.length > 0 && own[0] && own[0].type !== 'object') {
      throw specificationError(
        { ...own[0].position, column: 'Type' },
        `${name} has fields and so is an object`,
      )
    }
    const inner = nested.map(part => ({ ...part, field: part.field.slice(name.length + 1) }))
    properties[name] =
      inner.length > 0
        ? {
            ...(own[0]?.notes && { description: own[0].notes }),
            ...buildObjectSchema(inner, open, names),
          }
        : buildFieldSchema(own[0]!, names)
    if (own[0] ? own[0].required : inner.some(part => part.required)) required.push(name)
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: open,
  }
}

function buildFieldSchema(
  { position, type, required, notes, isOurs }: FieldRow,
  names: ReadonlySet<string>,
): Schema {
  const at = { ...position, column: 'Type' }
  const schema = readType()
  if ('default' in schema) {
    if (required)
      throw specificationError(
        { ...position, column: 'Required' },
        'a field with a default is not required',
      )
    requireFit(schema)
  }
  return { ...(notes && { description: notes }), ...schema, ...(isOurs && { 'x-contract': false }) }

  function readType(): Schema {
    try {
      return parseTypeCell(type, names)
    } catch (error) {
      throw specificationError(at, `cannot read "${type}": ${(error as Error).message}`)
    }
  }

  function requireFit({ default: value, ...rest }: Schema): void {
    if (JSON.stringify(rest).includes('$ref')) {
      throw specificationError(at, 'a default stands beside the type itself, not beside a resource')
    }
    try {
      shape(rest, { name: 'the default' }).check(value)
    } catch (error) {
      throw specificationError(at, (error as Error).message)
    }
  }
}

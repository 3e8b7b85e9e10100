import { contractDocument, type Reference } from '#api/contract/document.ts'

type Schema = { readonly [keyword: string]: unknown }

/** A value that a schema must refuse, and what the refusal must say. */
export type SchemaFault = {
  /** As messages name it: `messages[0].role`; empty for the value itself. */
  field: string
  kind: 'type' | 'choice' | 'bound' | 'form' | 'missing' | 'unknown'
  value: unknown
  /** Texts that the message has beside the field. */
  says: string[]
}

/** Larger bounds are left to tests that know why they are that large. */
const boundMax = 100_000
const depthMax = 5

/** The smallest value that a schema accepts: required fields alone, and of each choice the first. */
export function smallestValue(schema: Schema | Reference): unknown {
  const { type, anyOf, enum: choices, ...bounds } = resolve(schema)
  if (Array.isArray(choices)) return choices[0]
  if (Array.isArray(anyOf)) return smallestValue((anyOf as Schema[])[0]!)
  return smallest[String([type].flat()[0])]?.(bounds) ?? 'any'
}

const smallest: Record<string, (schema: Schema) => unknown> = {
  string: ({ format, minLength = 1 }) =>
    formed[String(format)] ?? 'x'.repeat(Math.max(1, Number(minLength))),
  integer: ({ minimum = 1 }) => minimum,
  number: ({ minimum = 1 }) => minimum,
  boolean: () => true,
  null: () => null,
  array: ({ items = {}, minItems = 0 }) =>
    Array.from({ length: Number(minItems) }, () => smallestValue(items as Schema)),
  object: schema =>
    Object.fromEntries(
      requiredOf(schema).map(name => [name, smallestValue(propertiesOf(schema)[name]!)]),
    ),
}

const formed: Record<string, string> = {
  uuid: '00000000-0000-7000-8000-000000000000',
  email: 'nobody@example.com',
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  'iso-date-time': '2026-01-01T00:00:00Z',
}

/** Every way to break a schema in one place: a required field missing, a wrong type, each bound passed, a misspelt field. */
export function schemaFaults(
  reference: Schema | Reference,
  options: {
    /** A value that the schema accepts; each fault is one change of it. */
    valid?: unknown
    /** The value comes as text, as in a query: numbers and booleans are read from it. */
    isText?: boolean
  } = {},
  depth = 0,
): SchemaFault[] {
  const schema = resolve(reference)
  const { isText = false, valid = smallestValue(schema) } = options
  const fault = (kind: SchemaFault['kind'], value: unknown, ...says: unknown[]): SchemaFault => ({
    field: '',
    kind,
    value,
    says: says.map(String),
  })
  const members = (schema.anyOf as Schema[] | undefined)?.map(resolve) ?? [schema]
  const types = members.flatMap(({ type, enum: choices }) =>
    type === undefined ? (choices ? ['string'] : ['any']) : ([type].flat() as string[]),
  )
  const faults: SchemaFault[] = wrongType(types, isText).map(value => fault('type', value))
  if (members.some(({ not }) => not)) faults.push(fault('form', 1_700_000_000, 'seconds'))
  if (members.some(({ format }) => format)) faults.push(fault('form', 'of no such form'))
  const plain = members.filter(({ type }) => type !== 'null')
  if (plain.length !== 1 || depth > depthMax) return faults
  const [only] = plain as [Schema]
  const { enum: choices, minimum, maximum, minLength, maxLength, format, pattern } = only
  if (choices) {
    faults.push(fault('choice', types.includes('string') ? 'none of these' : 0))
    return faults
  }
  if (minimum !== undefined) faults.push(fault('bound', Number(minimum) - 1, minimum))
  const isClamped = only['x-clamped'] === true
  if (maximum !== undefined && !isClamped) faults.push(fault('bound', Number(maximum) + 1, maximum))
  if (types.includes('integer')) faults.push(fault('type', Number(minimum ?? 0) + 0.5))
  const shortest = Number(minLength ?? 0)
  // An empty parameter is as good as none.
  if (shortest > (isText ? 1 : 0) && !format)
    faults.push(fault('bound', 'x'.repeat(shortest - 1), minLength))
  if (Number(maxLength) <= boundMax && !format && !isClamped)
    faults.push(fault('bound', 'x'.repeat(Number(maxLength) + 1), maxLength))
  if (pattern) faults.push(fault('form', 'x\u0007x'.padEnd(shortest, 'x'), 'must'))
  if (types.includes('array')) faults.push(...listFaults(only, fault, depth))
  if (types.includes('object')) faults.push(...objectFaults(only, valid, isText, fault, depth))
  return faults
}

/** A value of a type that is none of these; nothing where all are taken. */
function wrongType(types: readonly string[], isText: boolean): unknown[] {
  if (types.includes('any')) return []
  if (isText) return types.some(type => ['string', 'object'].includes(type)) ? [] : ['perhaps']
  const ofType = { boolean: true, string: 'text', integer: 7, array: [], object: {} }
  return Object.entries(ofType)
    .filter(([type]) => !types.includes(type))
    .map(([, value]) => value)
    .slice(0, 1)
}

type MakeFault = (kind: SchemaFault['kind'], value: unknown, ...says: unknown[]) => SchemaFault

function listFaults(schema: Schema, fault: MakeFault, depth: number): SchemaFault[] {
  const { items = {}, minItems = 0, maxItems = Infinity, uniqueItems } = schema
  const item = smallestValue(items as Schema)
  const many = (length: number): unknown[] => Array.from({ length }, () => item)
  const rest = many(Math.max(0, Number(minItems) - 1))
  const faults = schemaFaults(items as Schema, {}, depth + 1)
    .filter(({ field, kind }) => kind !== 'type' || field !== '')
    .map(inner => within('[0]', inner, value => [value, ...rest]))
  if (Number(minItems) > 0) faults.push(fault('bound', rest, minItems))
  // What is repeated in a set is one item.
  if (!uniqueItems && Number(maxItems) < boundMax)
    faults.push(fault('bound', many(Number(maxItems) + 1), maxItems))
  return faults
}

function objectFaults(
  schema: Schema,
  valid: unknown,
  isText: boolean,
  fault: MakeFault,
  depth: number,
): SchemaFault[] {
  const fields = valid as Record<string, unknown>
  const missing = requiredOf(schema).map(name => {
    const { [name]: _, ...others } = fields
    return { ...fault('missing', others), field: name }
  })
  const inside = Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const options = { isText, ...(Object.hasOwn(fields, name) && { valid: fields[name] }) }
    return schemaFaults(property, options, depth + 1).map(inner =>
      within(name, inner, value => ({ ...fields, [name]: value })),
    )
  })
  const closed = schema.additionalProperties === false
  return [...missing, ...inside, ...(closed ? misspeltFields(schema, fields) : [])]
}

/** A field that is unknown is refused where it nearly is one that is missing beside it. */
function misspeltFields(schema: Schema, valid: Record<string, unknown>): SchemaFault[] {
  const missing = Object.keys(propertiesOf(schema)).filter(name => !Object.hasOwn(valid, name))
  return missing.map(name => ({
    field: `${name}x`,
    kind: 'unknown',
    value: { ...valid, [`${name}x`]: 'any' },
    says: [],
  }))
}

const within = (
  name: string,
  { field, value, ...fault }: SchemaFault,
  put: (value: unknown) => unknown,
): SchemaFault => ({
  ...fault,
  field: field === '' || field.startsWith('[') ? name + field : `${name}.${field}`,
  value: put(value),
})

const requiredOf = ({ required = [] }: Schema): string[] => required as string[]

/** The fields that an object of a schema may have. */
export const propertiesOf = (schema: Schema | Reference): Record<string, Schema> =>
  (resolve(schema).properties ?? {}) as Record<string, Schema>

/** Follows references. */
function resolve(schema: Schema | Reference): Schema {
  if (typeof schema.$ref !== 'string') return schema
  let found: unknown = contractDocument
  for (const step of schema.$ref.split('/').slice(1)) found = (found as Schema)[step]
  return resolve(found as Schema)
}

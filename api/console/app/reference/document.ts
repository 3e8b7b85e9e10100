/** What the page reads of `/openapi.json`. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  default?: unknown
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  schema: Schema
  example?: unknown
}

type Content = { content?: Record<string, { schema?: Schema; example?: unknown }> }

export type Operation = {
  method: string
  path: string
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters: Parameter[]
  requestBody?: Content
  responses: Record<string, Content & { $ref?: string; description?: string }>
  security?: Record<string, unknown>[]
}

export type OpenApi = {
  info: { version: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Content & { description?: string }>
  }
}

/** Every operation with its method and path. */
export const operationsOf = ({ paths }: OpenApi): Operation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method,
      path,
      parameters: operation.parameters ?? [],
    })),
  )

export const isOfPath = (one: Parameter): boolean => one.in === 'path'

export const exampleOf = ({ example = '' }: Parameter): string =>
  typeof example === 'string' ? example : JSON.stringify(example)

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1)

/** A schema with what it refers to, one step. */
const resolve = (document: OpenApi, schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (document.components.schemas[nameOf(schema.$ref)] ?? {})

/** `integer 1..200`, `'date' | 'importance'`, `Memory[]`. */
export function typeWords(schema: Schema): string {
  const { $ref, type, enum: values, items, minimum, maximum, maxLength } = schema
  if ($ref !== undefined) return nameOf($ref)
  if (values) return values.map(value => JSON.stringify(value)).join(' | ')
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.map(typeWords).join(' | ')
  if (schema.allOf) return schema.allOf.map(typeWords).join(' & ')
  if (items) return `${typeWords(items)}[]`
  const bounds =
    minimum !== undefined || maximum !== undefined
      ? ` ${minimum ?? ''}..${maximum ?? ''}`
      : maxLength === undefined
        ? ''
        : `, at most ${maxLength} characters`
  return `${Array.isArray(type) ? type.join(' | ') : (type ?? 'anything')}${bounds}`
}

/** The fields of an object, those of all its parts. */
export function fieldsOf(
  document: OpenApi,
  schema: Schema,
): [name: string, of: Schema, isRequired: boolean][] {
  const { properties = {}, required = [], allOf = [] } = resolve(document, schema)
  const own = Object.entries(properties).map(([name, of]): [string, Schema, boolean] => [
    name,
    of,
    required.includes(name),
  ])
  return [...allOf.flatMap(part => fieldsOf(document, part)), ...own]
}

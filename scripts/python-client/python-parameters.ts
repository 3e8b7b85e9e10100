import type { ContractDocument, Endpoint, Reference } from '#api/contract/document.ts'
import { pythonName } from '#scripts/python-client/python-text.ts'
import { takesNull, typeExpression } from '#scripts/python-client/python-types.ts'
import type { Schema } from '#shared/core/shape.ts'

/** Where an argument of a method goes. */
export type ParameterPlace = 'path' | 'query' | 'headers' | 'body'

/** An argument of a method. */
export type Parameter = {
  /** As Python has it: `from_`. */
  name: string
  /** As the contract has it: `from`, `X-Session-ID`. */
  field: string
  place: ParameterPlace
  type: string
  isRequired: boolean
  takesNull: boolean
  notes: string
}

type Definitions = ContractDocument['$defs']

/** Headers under the name that their field has in a body or a query. */
const headerArguments: Record<string, string> = {
  'x-session-id': 'session_id',
  'x-embedding-model': 'embeddings',
  'x-memory-context-limit': 'context_limit',
  'x-memory-density': 'density',
  'x-memory-as-of': 'as_of',
}

/** The client sends these itself. */
const ownHeaders = new Set(['x-memory-key', 'x-memory-user', 'idempotency-key'])

/**
 * The arguments of an endpoint's method: what is in its path, then the fields of its body, then what
 * its query and its headers have beside these. A field that stands in several places is taken once, since
 * the contract lets it mean the same in each.
 */
export function readParameters(endpoint: Endpoint, $defs: Definitions): Parameter[] {
  const { params, query, headers, body } = endpoint
  const isOpenBody =
    body !== undefined && definition(body.schema, $defs).additionalProperties === true
  const isFields = body !== undefined && !body.lines
  const found = [
    ...fieldsOf(params, 'path', $defs),
    ...(isFields ? fieldsOf(body.schema, 'body', $defs) : []),
    // Beside a provider's body a parameter of the query could be taken for the provider's.
    ...(isOpenBody ? [] : fieldsOf(query, 'query', $defs)),
    ...fieldsOf(headers, 'headers', $defs),
  ]
  const distinct = new Map<string, Parameter>()
  for (const one of found) if (!distinct.has(one.name)) distinct.set(one.name, one)
  return [...distinct.values()]
}

const definition = ({ $ref }: Reference, $defs: Definitions): Schema =>
  $defs[$ref.split('/').at(-1)!]!

function fieldsOf(
  reference: Reference | undefined,
  place: ParameterPlace,
  $defs: Definitions,
): Parameter[] {
  if (!reference) return []
  const { properties, required = [] } = definition(reference, $defs)
  return Object.entries(properties as Definitions)
    .filter(([field]) => place !== 'headers' || !ownHeaders.has(field))
    .map(([field, schema]) => {
      const described = place === 'headers' || place === 'path' ? listed(schema, $defs) : schema
      const isRequired = place === 'path' || (required as string[]).includes(field)
      const isText = place === 'path' || place === 'headers'
      const expression = { quoteNames: false, prefix: 'types.', sequences: true }
      return {
        name:
          place === 'headers'
            ? (headerArguments[field] ?? pythonName(field.replace(/^x-/, '')))
            : pythonName(field),
        field: place === 'headers' ? headerCase(field) : field,
        place,
        type:
          field === 'file'
            ? 'FileInput'
            : isText
              ? textType(described, $defs)
              : typeExpression(described, expression),
        isRequired,
        takesNull: place === 'body' && takesNull(described, $defs),
        notes: (described.description as string | undefined) ?? '',
      }
    })
}

/** The schema in one of the lists of headers and path parameters. */
function listed({ $ref }: Schema, $defs: Definitions): Schema {
  const [, , list, , field] = String($ref).split('/')
  return ($defs[list!]!.properties as Definitions)[field!]!
}

/** What a header or a path holds is text; a number or a boolean may be given as such. */
function textType(schema: Schema, $defs: Definitions): string {
  const resolved = typeof schema.$ref === 'string' ? definition(schema as Reference, $defs) : schema
  return typeExpression(
    { ...resolved, description: undefined },
    { quoteNames: false, prefix: 'types.' },
  )
}

/** `x-session-id` as it is usually written. */
const headerCase = (name: string): string =>
  name
    .split('-')
    .map(part => (part === 'id' ? 'ID' : part[0]!.toUpperCase() + part.slice(1)))
    .join('-')

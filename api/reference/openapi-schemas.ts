import { errorBodyOf } from '#api/contract/contract.ts'
import { contractDocument, type Endpoint, type Reference } from '#api/contract/document.ts'
import type { Schema } from '#shared/core/shape.ts'

type Json = Record<string, unknown>

/** A field of a parameter object. */
export type SchemaField = { name: string; schema: Schema; required: boolean }

/** The schemas that bodies and answers refer to; those of parameters are inlined. */
export function collectSchemas(endpoints: readonly Endpoint[]): Json {
  const wanted = new Set<string>(endpoints.map(({ path }) => errorBodyOf(path)))
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (name !== '$ref' || typeof inner !== 'string') visit(inner)
      else if (!wanted.has(definitionName(inner))) {
        wanted.add(definitionName(inner))
        visit(contractDocument.$defs[definitionName(inner)])
      }
    }
  }
  for (const { body, answers, params, query, headers } of endpoints) {
    visit([body?.schema, Object.values(answers).map(({ schema }) => schema)])
    for (const { schema } of [params, query, headers].flatMap(listFields))
      visit(resolveReferences(schema))
  }
  visit(Object.values(listAnswerHeaders()).map(({ schema }) => resolveReferences(schema)))
  const inContract = contractDefinitions()
  return Object.fromEntries(
    Object.entries(contractDocument.$defs)
      .filter(([name]) => wanted.has(name))
      .map(([name, schema]) => {
        const belongs = inContract.has(name)
        return [
          name,
          { ...(rewriteReferences(withOrigin(schema, belongs)) as Json), 'x-contract': belongs },
        ]
      }),
  )
}

const definitionName = (reference: string): string => reference.split('/')[2]!

/** The fields of a parameter object. */
export function listFields(reference: Reference | undefined): SchemaField[] {
  if (!reference) return []
  const { properties = {}, required = [] } = resolveReferences(reference) as {
    properties?: Record<string, Schema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    required: required.includes(name),
  }))
}

/** The headers of answers, of all endpoints together. */
export const listAnswerHeaders = (): SchemaField[] => listFields({ $ref: '#/$defs/AnswerHeaders' })

/** Follows references of a parameter, so that its description and type stand side by side. */
export function resolveReferences(schema: Schema): Schema {
  const { $ref, ...beside } = schema as { $ref?: string }
  if ($ref === undefined) return schema
  const definition = $ref
    .slice('#/'.length)
    .split('/')
    .reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], contractDocument)
  return { ...resolveReferences(definition as Schema), ...beside }
}

/** References of the contract as references of an OpenAPI document. */
export function rewriteReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewriteReferences)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === '$ref' && typeof inner === 'string'
        ? inner.replace('#/$defs/', '#/components/schemas/')
        : rewriteReferences(inner),
    ]),
  )
}

/**
 * The definitions that belong to the contract of the hosted service: those that its endpoints refer to, by way of
 * fields that belong to it too.
 */
function contractDefinitions(): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== 'object' || value === null || isMarkedOurs(value)) return
    for (const [name, inner] of Object.entries(value)) {
      if (name !== '$ref' || typeof inner !== 'string') visit(inner)
      else visitDefinition(inner.split('/')[2]!)
    }
  }
  const visitDefinition = (name: string): void => {
    const definition = contractDocument.$defs[name]
    if (found.has(name) || !definition || isMarkedOurs(definition)) return
    found.add(name)
    visit(definition)
  }
  visitDefinition('ErrorBody')
  for (const endpoint of Object.values(contractDocument.endpoints)) {
    if (!endpoint.ours) visit(partsOf(endpoint))
  }
  return found
}

const partsOf = ({ params, query, headers, body, answers }: Endpoint): unknown[] => [
  [params, query, headers, body?.schema],
  Object.values(answers).map(({ schema }) => schema),
]

export const isMarkedOurs = (schema: object): boolean => (schema as Json)['x-contract'] === false

/** A schema whose fields, at every depth, say in `x-contract` whether they belong to the contract. */
function withOrigin(schema: Schema, inContract: boolean): Schema {
  const { properties, ...rest } = schema as { properties?: Record<string, Schema> }
  if (!properties) return schema
  const marked = Object.entries(properties).map(([name, field]): [string, Schema] => {
    const belongs = inContract && !isMarkedOurs(field)
    return [name, { ...withOrigin(field, belongs), 'x-contract': belongs }]
  })
  return { ...rest, properties: Object.fromEntries(marked) }
}

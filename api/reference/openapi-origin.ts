import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import type { Schema } from '#shared/core/shape.ts'

type Json = Record<string, unknown>

/**
 * The definitions that belong to the contract of the hosted service: those that its endpoints refer to, by way of
 * fields that belong to it too.
 */
export function contractDefinitions(): ReadonlySet<string> {
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
export function withOrigin(schema: Schema, inContract: boolean): Schema {
  const { properties, ...rest } = schema as { properties?: Record<string, Schema> }
  if (!properties) return schema
  const marked = Object.entries(properties).map(([name, field]): [string, Schema] => {
    const belongs = inContract && !isMarkedOurs(field)
    return [name, { ...withOrigin(field, belongs), 'x-contract': belongs }]
  })
  return { ...rest, properties: Object.fromEntries(marked) }
}

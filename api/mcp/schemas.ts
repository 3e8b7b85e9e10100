import { contractDocument, type Reference } from '#api/contract/document.ts'
import type { Schema } from '#shared/core/shape.ts'

type ObjectSchema = Record<string, unknown> & {
  type: 'object'
  required?: string[]
  properties?: Record<string, unknown>
}

/** The fields of a named object of the contract, each with its schema. */
export const schemaProperties = (reference: Reference | undefined): Record<string, unknown> =>
  (reference && (findDefinition(reference.$ref) as ObjectSchema).properties) ?? {}

/** A schema together with every definition it refers to. */
export function bundleDefinitions(schema: Schema | Reference): ObjectSchema {
  const root = '$ref' in schema ? findDefinition(schema.$ref as string) : schema
  const $defs: Record<string, unknown> = {}
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(collect)
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (key !== '$ref' || typeof inner !== 'string') {
        collect(inner)
        continue
      }
      const name = inner.split('/')[2]!
      if (name in $defs) continue
      $defs[name] = contractDocument.$defs[name]
      collect($defs[name])
    }
  }
  collect(root)
  return { ...root, ...(Object.keys($defs).length > 0 && { $defs }) } as ObjectSchema
}

const findDefinition = (reference: string): Schema =>
  contractDocument.$defs[reference.split('/')[2]!]!

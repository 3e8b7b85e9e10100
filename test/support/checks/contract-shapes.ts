/** The types of fields as the documents of the contract name them; `?`: may be null. */
type FieldType =
  | 'string'
  | 'string?'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'array'
  | 'object'
  | 'uuid'
  | 'iso'
  | 'ms'

/** Fields with their types, written as `id:uuid usage.total_tokens:integer`. */
export const fieldsOf = (text: string): [string, FieldType][] =>
  text.split(/\s+/).flatMap(field => {
    const [path, type] = field.split(':') as [string, FieldType?]
    return path && type ? [[path, type]] : []
  })

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

const checks: Record<FieldType, (value: unknown) => boolean> = {
  string: value => typeof value === 'string',
  'string?': value => value === null || typeof value === 'string',
  integer: value => Number.isInteger(value),
  number: value => typeof value === 'number' && Number.isFinite(value),
  boolean: value => typeof value === 'boolean',
  array: value => Array.isArray(value),
  object: value => typeof value === 'object' && value !== null && !Array.isArray(value),
  uuid: value => typeof value === 'string' && uuid.test(value),
  // It survives `Date`: written again it is the same moment in the same form.
  iso: value => typeof value === 'string' && new Date(value).toISOString() === value,
  ms: value => Number.isInteger(value) && (value as number) > 1_500_000_000_000,
}

/** Whether a value is of a type; a missing one never is. */
export const isField = (type: FieldType, value: unknown): boolean => checks[type](value)

import type { ErrorObject } from 'ajv/dist/2020.js'
import {
  countCodePoints,
  describeValue,
  shownLengthMax,
  suggestName,
  unknownFieldHint,
} from '#shared/core/describe-input.ts'
import { Refusal } from '#shared/core/errors.ts'
import { unknownField as unknownFieldRefusal } from '#shared/core/refusals.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import type { JsonSchema } from '#shared/core/schema-walk.ts'

/**
 * Makes the refusal `invalid` of Ajv's errors; it names the field, the bound and the value.
 *
 * @param errors with `verbose`
 * @param name how the message names the value as a whole
 * @param notes ignored fields, which may have been meant for a missing one
 */
export function toRefusal(
  errors: readonly ErrorObject[],
  name: string,
  { ignored }: Pick<InputNotes, 'ignored'>,
): Refusal {
  const error = mostSpecificError(errors)
  if (!error) return new Refusal('invalid', `${name} is not valid`)
  const unknown = unknownField(error)
  if (unknown !== undefined) {
    const known = Object.keys((error.parentSchema?.properties ?? {}) as object)
    const pointer = unknown.replaceAll('~', '~0').replaceAll('/', '~1')
    const field = fieldPath(`${error.instancePath}/${pointer}`)
    return unknownFieldRefusal(field, unknownFieldHint(unknown, known))
  }
  const isMissing = error.keyword === 'required' && ignored.size > 0
  const hint = isMissing
    ? `not known here: ${[...ignored].slice(0, 20).join(', ')}`
    : (enumHint(error) ?? filterHint(error))
  return new Refusal('invalid', errorMessage(error, name), hint)
}

/** The field that the schema does not know. Ajv first reports a misspelt required field as missing. */
function unknownField({ keyword, params, data, parentSchema }: ErrorObject): string | undefined {
  if (keyword === 'additionalProperties') return String(params.additionalProperty)
  if (keyword !== 'required' || parentSchema?.additionalProperties !== false) return undefined
  const known = (parentSchema.properties ?? {}) as object
  return Object.keys(data as object).find(name => !Object.hasOwn(known, name))
}

/** The error to report: of a union, that of the member whose type matched and whose fault is deepest. */
function mostSpecificError(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const last = errors.at(-1)
  if (last?.keyword !== 'anyOf') return last
  const depth = last.instancePath.length
  const inside = errors
    .slice(0, -1)
    .filter(
      ({ instancePath, keyword, data }) =>
        instancePath.length > depth ||
        !(['type', 'format'].includes(keyword) || (keyword === 'enum' && Object(data) === data)),
    )
  return inside.toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0] ?? last
}

function errorMessage(error: ErrorObject, name: string): string {
  const { keyword, params, data, instancePath, parentSchema } = error
  const field = instancePath ? fieldPath(instancePath) : name
  if (keyword === 'required') {
    return `${fieldPath(`${instancePath}/${params.missingProperty}`)} is required`
  }
  const description = messageTemplates[keyword]?.(params, data, parentSchema ?? {})
  return `${field} ${description ?? error.message ?? 'is not valid'}`
}

/** The second half of a message, by keyword: the bound, then the value. */
const messageTemplates: Record<
  string,
  (params: Record<string, unknown>, came: unknown, schema: JsonSchema) => string
> = {
  type: ({ type }, came) => `must be ${describeTypes(type)}, not ${describeValue(came)}`,
  enum: ({ allowedValues }, came) =>
    `must be ${describeChoices(allowedValues)}, not ${describeValue(came)}`,
  minimum: ({ limit }, came) => `must be at least ${String(limit)}, not ${describeValue(came)}`,
  maximum: ({ limit }, came) => `must be at most ${String(limit)}, not ${describeValue(came)}`,
  minLength: ({ limit }, came) =>
    `must have at least ${pluralize(limit, 'character')}, not ${countCodePoints(came as string)}`,
  maxLength: ({ limit }, came) =>
    `must have at most ${pluralize(limit, 'character')}, not ${countCodePoints(came as string)}`,
  minItems: ({ limit }, came) =>
    `must have at least ${pluralize(limit, 'item')}, not ${(came as unknown[]).length}`,
  maxItems: ({ limit }, came) =>
    `must have at most ${pluralize(limit, 'item')}, not ${(came as unknown[]).length}`,
  uniqueItems: ({ i, j }) => `must not repeat an item: ${String(j)} and ${String(i)} are the same`,
  format: ({ format }, came) =>
    `must be ${formatNames[String(format)] ?? String(format)}, not ${describeValue(came)}`,
  pattern: (_, __, schema) => (schema['x-says'] as string) ?? 'is not of the right form',
  not: (_, came, schema) =>
    `${(schema['x-says'] as string) ?? 'is not allowed'}; ${describeValue(came)} looks like seconds`,
  anyOf: (_, came, schema) => `must be ${describeUnion(schema)}, not ${describeValue(came)}`,
}

const typeNames: Record<string, string> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

const formatNames: Record<string, string> = {
  uuid: 'a UUID',
  email: 'an email address',
  date: 'a date such as 2026-11-20',
  'date-time': 'a date and time such as 2026-11-20T15:15:00Z',
  'iso-date-time': 'a date and time such as 2026-11-20T15:15:00Z',
}

function describeTypes(type: unknown): string {
  const names = Array.isArray(type) ? type : String(type).split(',')
  return names.map(name => typeNames[String(name)] ?? String(name)).join(' or ')
}

function describeChoices(values: unknown): string {
  const names = (values as unknown[]).map(String)
  return names.length === 1 ? names[0]! : `one of ${names.join(', ')}`
}

function describeUnion({ anyOf }: JsonSchema): string {
  const members = (anyOf as JsonSchema[]).map(({ type, format, not, $ref }) => {
    if (typeof format === 'string' && formatNames[format]) return formatNames[format]
    if (not !== undefined) return 'milliseconds since 1970'
    return typeof $ref === 'string' ? `a ${wordsOf($ref)}` : describeTypes(type)
  })
  return members.join(' or ')
}

/** `#/$defs/SessionId` as `session id`. */
const wordsOf = ($ref: string): string =>
  $ref
    .slice($ref.lastIndexOf('/') + 1)
    .replaceAll(/\B[A-Z]/g, ' $&')
    .toLowerCase()

const pluralize = (limit: unknown, noun: string): string =>
  `${String(limit)} ${noun}${limit === 1 ? '' : 's'}`

/** `/messages/3/role` as `messages[3].role`. */
function fieldPath(pointer: string): string {
  let field = ''
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const short = name.length <= shownLengthMax ? name : `${name.slice(0, shownLengthMax)}…`
    field += /^\d+$/.test(name) ? `[${short}]` : `${field && '.'}${short}`
  }
  return field
}

/** The spelling of what other services write as a list or null. */
const filterHint = ({ keyword, data, instancePath }: ErrorObject): string | undefined =>
  keyword === 'anyOf' && instancePath.startsWith('/filter/')
    ? Array.isArray(data)
      ? 'one of several values is written {"in":["a","b"]}'
      : 'of a value that is missing {"exists":false} is true'
    : undefined

function enumHint({ keyword, params, data }: ErrorObject): string | undefined {
  if (keyword !== 'enum' || typeof data !== 'string') return undefined
  const nearest = suggestName(data, (params.allowedValues as unknown[]).map(String))
  return nearest && `did you mean ${nearest}?`
}

import {
  Ajv2020,
  type AnySchema,
  type ErrorObject,
  type FormatDefinition,
  type ValidateFunction,
} from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { countCodePoints, describeValue, shownLengthMax } from '#shared/core/describe-value.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isRepresentable, addMissingSeconds } from '#shared/core/dates.ts'
import { readBooleans, requirePlainNumbers } from '#shared/core/query-values.ts'
import { SchemaWalk, type JsonSchema } from '#shared/core/schema-walk.ts'
import { suggestName } from '#shared/core/suggest-name.ts'

/** A JSON Schema, 2020-12. */
export type Schema = JsonSchema

/** Checks a value from outside. Inside the service its type is trusted. */
export type Shape<T> = {
  readonly schema: Schema
  /**
   * The value as a `T`: absent fields get their defaults.
   *
   * @throws Refusal `invalid` naming the first fault: its field, the bound and the value.
   */
  check(value: unknown): T
  /** Compiles the schema, if no check has done so: 1 to 40 ms of CPU. */
  compile(): void
}

export type ShapeOptions = {
  /** How a message names the value as a whole, such as `the body`. */
  name?: string
  /** Reads numbers and booleans from text, for queries and paths; checks a copy. */
  coerce?: boolean
  /** Takes null in an optional field, at any depth, for its absence, where the schema has no null. */
  nullIsAbsent?: boolean
  /** The document that the schema's references point to, with an `$id` and `$defs`. */
  document?: Schema
}

/**
 * Makes a shape of a schema. It is compiled at its first check, or before by `compile`; until then it costs
 * nothing.
 *
 * The annotation `x-says` of our own describes a pattern in a message, such as `must not hold …`.
 */
export function shape<T>(schema: Schema, options: ShapeOptions = {}): Shape<T> {
  const { name = 'the value', coerce = false, nullIsAbsent = false, document } = options
  const walk = walkOf(document)
  let compiled: ValidateFunction | undefined
  const compile = (): ValidateFunction =>
    (compiled ??= ajvFor(document, coerce).compile(schema as AnySchema))
  return {
    schema,
    compile: () => void compile(),
    check(value) {
      const validate = compile()
      if (nullIsAbsent) walk.removeAbsent(schema, value)
      const checked = coerce && isObject(value) ? readBooleans(walk, schema, value) : value
      if (!validate(checked)) throw toRefusal(validate.errors ?? [], name)
      if (coerce && isObject(value)) requirePlainNumbers(value, checked as object)
      return checked as T
    },
  }
}

const noDocument: Schema = {}
const walks = new WeakMap<Schema, SchemaWalk>()

function walkOf(document: Schema = noDocument): SchemaWalk {
  const walk = walks.get(document) ?? new SchemaWalk(document)
  walks.set(document, walk)
  return walk
}

const ajvCache = new WeakMap<Schema, Map<boolean, Ajv2020>>()

/** One Ajv per document and mode, so that a shared definition is compiled once. */
function ajvFor(document: Schema = noDocument, coerce: boolean): Ajv2020 {
  const known = ajvCache.get(document) ?? new Map<boolean, Ajv2020>()
  ajvCache.set(document, known)
  const existing = known.get(coerce)
  if (existing) return existing
  const ajv = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    allErrors: false,
    verbose: true,
    useDefaults: true,
    coerceTypes: coerce,
    keywords: ['x-says'],
    // Tests check our schemas against the meta-schema; here that would cost the first request 43
    // ms.
    validateSchema: false,
  })
  addFormats.default(ajv)
  for (const format of ['date-time', 'iso-date-time'] as const) {
    const { validate: matches } = addFormats.default.get(format) as FormatDefinition<string>
    // The format requires seconds, and accepts leap seconds and `+02`, which Date cannot read.
    const validate = (text: string) =>
      (matches as (text: string) => boolean)(addMissingSeconds(text)) && isRepresentable(text)
    ajv.addFormat(format, { type: 'string', validate })
  }
  ajv.addFormat('uuid', /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i)
  if (document !== noDocument) ajv.addSchema(document)
  known.set(coerce, ajv)
  return ajv
}

function toRefusal(errors: readonly ErrorObject[], name: string): Refusal {
  const error = mostSpecificError(errors)
  if (!error) return new Refusal('invalid', `${name} is not valid`)
  if (error.keyword === 'additionalProperties') {
    const unknown = String(error.params.additionalProperty)
    const known = Object.keys((error.parentSchema?.properties ?? {}) as object)
    const field = fieldPath(
      `${error.instancePath}/${unknown.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    )
    return new Refusal('invalid', `unknown field ${field}`, unknownFieldHint(unknown, known))
  }
  return new Refusal('invalid', errorMessage(error, name), enumHint(error))
}

/**
 * The error to report. A union reports a fault for each of its members: the member that was meant
 * is the one whose type matched and whose fault is deepest.
 */
function mostSpecificError(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const last = errors.at(-1)
  if (last?.keyword !== 'anyOf') return last
  const depth = last.instancePath.length
  const inside = errors
    .slice(0, -1)
    .filter(
      ({ instancePath, keyword }) =>
        instancePath.length > depth || (keyword !== 'type' && keyword !== 'format'),
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

type MessageTemplate = (params: Record<string, unknown>, came: unknown, schema: Schema) => string

/** The second half of a message, by keyword: the bound, then what came. */
const messageTemplates: Record<string, MessageTemplate> = {
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

function describeUnion({ anyOf }: Schema): string {
  const members = (anyOf as Schema[]).map(({ type, format, not, $ref }) => {
    if (typeof format === 'string' && formatNames[format]) return formatNames[format]
    if (not !== undefined) return 'milliseconds since 1970'
    return typeof $ref === 'string' ? `a ${$ref.split('/').at(-1)}` : describeTypes(type)
  })
  return members.join(' or ')
}

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

function unknownFieldHint(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return 'no fields are taken here'
  const nearest = suggestName(unknown, known)
  return nearest ? `did you mean ${nearest}?` : `known fields: ${known.join(', ')}`
}

function enumHint({ keyword, params, data }: ErrorObject): string | undefined {
  if (keyword !== 'enum' || typeof data !== 'string') return undefined
  const nearest = suggestName(data, (params.allowedValues as unknown[]).map(String))
  return nearest && `did you mean ${nearest}?`
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

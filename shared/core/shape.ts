import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { hasZone, isDateTime } from '#shared/core/dates.ts'
import {
  clampFields,
  InputNotes,
  readBooleans,
  removeUnknown,
  requirePlainNumbers,
} from '#shared/core/lenient-input.ts'
import { SchemaWalk, type JsonSchema } from '#shared/core/schema-walk.ts'
import { toRefusal } from '#shared/core/shape-refusal.ts'

export type Schema = JsonSchema

/** Checks a value from outside. Inside the service its type is trusted. */
export type Shape<T> = {
  readonly schema: Schema
  /**
   * Returns the value with the defaults of absent fields.
   *
   * @param notes gets the ignored fields and the changed values
   * @throws Refusal `invalid` naming the first fault: its field, the bound and the value.
   */
  check(value: unknown, notes?: InputNotes): T
  /** Compiles the schema before its first check: 1 to 40 ms of CPU. */
  compile(): void
}

export type ShapeOptions = {
  /** How a message names the value as a whole, such as `the body`. */
  name?: string
  /** Reads numbers and booleans from text, for queries and paths; checks a copy. */
  coerce?: boolean
  /** Reads null in an optional field, at any depth, as its absence, where the schema has no null. */
  nullIsAbsent?: boolean
  /**
   * What becomes of unknown fields: `ignored`, but for those with nearly the name of a known one; `refused`; or
   * `judged` by the schema. With the first two, a set may repeat its items.
   */
  unknown?: 'ignored' | 'refused' | 'judged'
  /** The document that the schema's references point to, with an `$id` and `$defs`. */
  document?: Schema
}

/**
 * Makes a shape of a schema, which is compiled at its first check or by `compile`.
 *
 * Annotations of our own: `x-says` describes a pattern in a message, such as `must not hold …`; `x-clamped` values are
 * brought down to their bound; `x-contract` is for the reference, `x-moves` for what is sent back; of an `x-strict` object
 * unknown fields and nulls are refused in every body.
 */
export function shape<T>(schema: Schema, options: ShapeOptions = {}): Shape<T> {
  const {
    name = 'the value',
    coerce = false,
    nullIsAbsent = false,
    unknown = 'judged',
    document,
  } = options
  const walk = walkOf(document)
  let compiled: ValidateFunction | undefined
  const compile = (): ValidateFunction =>
    (compiled ??= ajvFor(document, coerce).compile(schema as AnySchema))
  return {
    schema,
    compile: () => void compile(),
    check(value, notes = new InputNotes()) {
      const validate = compile()
      if (nullIsAbsent) walk.removeAbsent(schema, value)
      if (unknown !== 'judged') removeUnknown(walk, schema, value, { notes, unknown })
      clampFields(walk, schema, value, notes)
      const checked = coerce && isObject(value) ? readBooleans(walk, schema, value) : value
      if (!validate(checked)) throw toRefusal(validate.errors ?? [], name, notes)
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
    keywords: ['x-says', 'x-clamped', 'x-contract', 'x-moves', 'x-strict'],
    // Tests check our schemas against the meta-schema; here it would cost the first request 43 ms.
    validateSchema: false,
  })
  addFormats.default(ajv)
  // The package's own require seconds and accept leap seconds, which `Date` does not have.
  ajv.addFormat('iso-date-time', isDateTime)
  ajv.addFormat('date-time', text => isDateTime(text) && hasZone(text))
  ajv.addFormat('uuid', /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i)
  if (document !== noDocument) ajv.addSchema(document)
  known.set(coerce, ajv)
  return ajv
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

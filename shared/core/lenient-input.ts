import {
  countCodePoints,
  describeValue,
  shownLengthMax,
  suggestName,
  unknownFieldHint,
} from '#shared/core/describe-input.ts'
import { Refusal } from '#shared/core/errors.ts'
import { unknownField } from '#shared/core/refusals.ts'
import type { Branch, JsonSchema, SchemaWalk } from '#shared/core/schema-walk.ts'

/** The parts of a request that were ignored or changed. */
export class InputNotes {
  /** Up to 1,000 unknown fields, parameters and headers, such as `entries[].colour`. */
  readonly ignored = new Set<string>()
  /** By field, the bound that replaced a value above it. */
  readonly clamped = new Map<string, number>()

  noteIgnored(field: string): void {
    if (this.ignored.size < ignoredMax) this.ignored.add(field)
  }
}

const ignoredMax = 1_000

/** Unknown fields that are compared with known names: 2 µs for each. */
const comparedMax = 1_000

/**
 * Removes from a value, in place and at every level, the fields that the schema does not know and the repeated items
 * of sets.
 *
 * @throws Refusal `invalid` for an unknown field whose name is nearly that of a known one that is missing, and for
 *   every one where they are refused.
 */
export function removeUnknown(
  walk: SchemaWalk,
  schema: JsonSchema,
  value: unknown,
  { notes, unknown }: { notes: InputNotes; unknown: 'ignored' | 'refused' },
): void {
  let compared = 0
  visit(walk.branches(schema), value, '')

  function visit(branches: readonly Branch[], value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) return visitList(branches, value, path)
    const objects = branches.filter(({ types, isStrict }) => types?.includes('object') && !isStrict)
    if (objects.length > 0) visitObject(objects, value as Record<string, unknown>, path)
  }

  function visitList(branches: readonly Branch[], list: unknown[], path: string): void {
    if (branches.some(({ isSet }) => isSet)) removeRepeated(list)
    const items = branches.flatMap(({ items }) => (items ? walk.branches(items) : []))
    if (items.length === 0) return
    for (const [index, item] of list.entries()) visit(items, item, `${path}[${index}]`)
  }

  function visitObject(
    objects: readonly Branch[],
    fields: Record<string, unknown>,
    path: string,
  ): void {
    const isClosed = objects.every(branch => branch.isClosed)
    for (const name of Object.keys(fields)) {
      const known = objects.filter(({ properties }) => Object.hasOwn(properties, name))
      const field = `${path}${path && '.'}${name.slice(0, shownLengthMax)}`
      if (known.length > 0) {
        const inner = known.flatMap(({ properties }) => walk.branches(properties[name]!))
        visit(inner, fields[name], field)
      } else if (isClosed) {
        if (unknown === 'refused')
          throw unknownField(field, unknownFieldHint(name, namesOf(objects)))
        if (compared++ < comparedMax) requireNoNearMiss(objects, fields, { name, field })
        notes.noteIgnored(field.replaceAll(/\[\d+\]/g, '[]'))
        delete fields[name]
      }
    }
  }
}

const namesOf = (objects: readonly Branch[]): string[] =>
  objects.flatMap(({ properties }) => Object.keys(properties))

function requireNoNearMiss(
  objects: readonly Branch[],
  fields: Record<string, unknown>,
  { name, field }: { name: string; field: string },
): void {
  const missing = namesOf(objects).filter(known => !Object.hasOwn(fields, known))
  const meant = suggestName(name, missing)
  if (meant) throw unknownField(field, `did you mean ${meant}?`)
}

/** Not by `splice`: a list may have more items than a call has arguments. */
function removeRepeated(list: unknown[]): void {
  const distinct = new Set(list)
  list.length = 0
  for (const item of distinct) list.push(item)
}

/**
 * Brings fields that are marked `x-clamped` down to their bound, in place, at the value's own level: numbers to their
 * maximum; of a longer text the beginning and the end stay, which hold the question.
 */
export function clampFields(
  walk: SchemaWalk,
  schema: JsonSchema,
  value: unknown,
  notes: InputNotes,
): void {
  if (typeof value !== 'object' || value === null) return
  const fields = value as Record<string, unknown>
  for (const [name, { maximum, maxLength }] of walk.clamped(schema)) {
    const given = Object.hasOwn(fields, name) ? fields[name] : undefined
    const clamped =
      maxLength === undefined ? clampNumber(given, maximum!) : clampText(given, maxLength)
    if (clamped === undefined) continue
    fields[name] = clamped
    notes.clamped.set(name, (maxLength ?? maximum)!)
  }
}

/** @returns undefined for a number in bounds and for other values */
function clampNumber(given: unknown, maximum: number): number | string | undefined {
  if (Number.isFinite(given)) return Number(given) > maximum ? maximum : undefined
  const isText = typeof given === 'string' && /^\d{1,20}$/.test(given)
  return isText && Number(given) > maximum ? String(maximum) : undefined
}

function clampText(given: unknown, lengthMax: number): string | undefined {
  if (typeof given !== 'string' || countCodePoints(given) <= lengthMax) return undefined
  const half = Math.floor((lengthMax - 1) / 2)
  return `${given.slice(0, half)}\n${given.slice(-half)}`.toWellFormed()
}

/** Copies query parameters with `true` and `false` for the `1` and `0` of booleans. */
export function readBooleans<Values extends Record<string, unknown>>(
  walk: SchemaWalk,
  schema: JsonSchema,
  values: Values,
): Values {
  const properties = walk.properties(schema)
  const read = Object.entries(values).map(([name, value]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    const isDigit = (value === '1' || value === '0') && property && walk.allows(property, 'boolean')
    return [name, isDigit ? String(value === '1') : value]
  })
  return Object.fromEntries(read) as Values
}

/** @throws Refusal `invalid` for texts that Ajv reads as numbers and people do not: `Infinity`, `0x10`. */
export function requirePlainNumbers(sent: object, coerced: object): void {
  for (const [field, text] of Object.entries(sent)) {
    if (typeof text !== 'string') continue
    if (typeof (coerced as Record<string, unknown>)[field] !== 'number') continue
    if (/^-?\d{1,20}(?:\.\d{1,20})?$/.test(text)) continue
    throw new Refusal('invalid', `${field} must be a plain number, not ${describeValue(text)}`)
  }
}

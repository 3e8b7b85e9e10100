import { Refusal } from '#shared/core/errors.ts'
import { parseExclusiveEnd, parseStart, type Moment } from '#shared/core/dates.ts'
import { allOf, comparisons, type Comparison, type Condition } from '#shared/domain/condition.ts'
import {
  parseMetadataValue,
  readMetadataEntries,
  valueHint,
  type MetadataValue,
} from '#shared/domain/metadata.ts'
import { originCondition, origins } from '#shared/domain/origin.ts'

/** Fields of a filter that the contract has checked: `and`, `or`, `not`, `metadata`, and fields of memories. */
type Fields = Readonly<Record<string, unknown>>

const depthMax = 8
/** Tests of one filter: of 100,000 memories 32 take at most 0.8 s of CPU, in steps. */
const testsMax = 32
const choicesMax = 32

/**
 * The condition that `metadata` and `filter` of a request make.
 *
 * @returns undefined without a filter and a field of metadata
 * @throws Refusal `invalid` for what the contract's schemas cannot say: an object without fields, more than 8 levels or
 *   32 tests, a text or number that metadata cannot have.
 */
export const conditionOf = (asked: {
  metadata?: Fields | undefined
  filter?: object | undefined
}): Condition | undefined =>
  allOf([
    metadataCondition(asked.metadata),
    asked.filter && readFilter(asked.filter as Fields, 'filter', { tests: 0 }, 1),
  ])

/**
 * The condition of `metadata`, whose fields have one value or a list of alternatives.
 *
 * @param field names it in errors
 * @returns undefined without fields
 * @throws Refusal `invalid` as `parseMetadata`, and for an empty list or one of more than 32.
 */
export function metadataCondition(
  given: Fields | undefined,
  field = 'metadata',
): Condition | undefined {
  const entries = readMetadataEntries(given, field).map(([key, value]) => {
    const name = `${field}.${key}`
    const choices: unknown[] = Array.isArray(value) ? value : [value]
    if (choices.length === 0 || choices.length > choicesMax)
      throw new Refusal('invalid', `${name} must list 1 to ${choicesMax} values`, valueHint)
    const values = choices.map(choice => parseMetadataValue(choice, name))
    return isOneOf(`metadata.${key}`, values)
  })
  return allOf(entries)
}

function readFilter(
  { and, or, not, metadata, ...fields }: Fields,
  path: string,
  count: { tests: number },
  depth: number,
): Condition {
  if (depth > depthMax) refuse(path, `nests deeper than ${depthMax} levels`)
  const inner = (given: unknown, name: string): Condition[] =>
    [given ?? []].flat().map(one => readFilter(one as Fields, `${path}.${name}`, count, depth + 1))
  const ofMetadata = readMetadataEntries(metadata as Fields | undefined, `${path}.metadata`)
  const tests = ofMetadata.map(([key, wanted]) => [`metadata.${key}`, wanted] as const)
  const condition = allOf([
    ...inner(and, 'and'),
    ...(or ? [{ or: inner(or, 'or') }] : []),
    ...inner(not, 'not').map(one => ({ not: one })),
    ...[...tests, ...Object.entries(fields)].map(([field, wanted]) => {
      const operators = Object.entries(Object(wanted) === wanted ? Object(wanted) : { eq: wanted })
      count.tests += operators.length
      if (count.tests > testsMax) refuse('filter', `has more than ${testsMax} tests`)
      const name = `${path}.${field}`
      const found = operators.map(([operator, given]) => readTest(field, operator, given, name))
      return allOf(found) ?? refuse(name, 'has no operator')
    }),
  ])
  return condition ?? refuse(path, 'has no field')
}

function readTest(field: string, operator: string, given: unknown, name: string): Condition {
  if (operator === 'exists') {
    const exists = { field, op: operator } as const
    return given ? exists : { not: exists }
  }
  const parse = (value: unknown): MetadataValue =>
    field.startsWith('metadata.') ? parseMetadataValue(value, name) : (value as MetadataValue)
  const values = [given].flat().map(parse)
  if (operator in comparisons) return comparison(field, operator as Comparison, values[0]!)
  const isOne = isOneOf(field, values)
  return operator === 'eq' || operator === 'in' ? isOne : { not: isOne }
}

/** Bounds of times are whole milliseconds; a day counts whole. */
function comparison(field: string, op: Comparison, bound: MetadataValue): Condition {
  if (field !== 'time') return { field, op, value: bound as number | string }
  const read = op === 'gt' || op === 'lte' ? parseExclusiveEnd : parseStart
  return { field, op: op.startsWith('g') ? 'gte' : 'lt', value: read(bound as Moment) }
}

/** Metadata name an origin and a feedback that the memory itself may have, too. */
function isOneOf(field: string, values: readonly MetadataValue[]): Condition {
  const ofOrigins = origins.filter(one => values.includes(one)).map(originCondition)
  if (field === 'origin') return { or: ofOrigins }
  const stored = { field, op: 'in', values } as const
  if (field === 'metadata.origin') return { or: [stored, ...ofOrigins] }
  return field === 'metadata.feedback' ? { or: [stored, { ...stored, field: 'feedback' }] } : stored
}

function refuse(path: string, fault: string): never {
  const example = '{"and":[{"metadata":{"topic":"pay"}},{"not":{"origin":"program"}}]}'
  throw new Refusal('invalid', `${path} ${fault}`, `Such as ${example}`)
}

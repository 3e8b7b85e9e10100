import type { MetadataValue } from '#shared/domain/metadata.ts'

/** What is asked of memories, as plain data: cursors are bound to it, and questions keep it. */
export type Condition =
  | { and: readonly Condition[] }
  | { or: readonly Condition[] }
  | { not: Condition }
  | Test

/**
 * A test of one field: `role`, `tier`, `time` (epoch ms), `importance`, `name`, `session`, `shared`, `feedback`, or
 * `metadata.` with a name. A memory without the field passes no test of it.
 */
export type Test = { field: string } & (
  | { op: 'exists' }
  | { op: 'in'; values: readonly MetadataValue[] }
  | { op: Comparison; value: number | string }
)

export type Comparison = keyof typeof comparisons

/** Holds for the order of a value and the bound: below 0, 0 or above; NaN where they have different types. */
export const comparisons = {
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
}

/** The condition that all of these make; undefined where there is none. */
export function allOf(conditions: readonly (Condition | undefined)[]): Condition | undefined {
  const given = conditions.filter(one => one !== undefined)
  return given.length > 1 ? { and: given } : given[0]
}

/** All tests of a condition, in its order. */
export function testsOf(condition: Condition): Test[] {
  if ('not' in condition) return testsOf(condition.not)
  if ('field' in condition) return [condition]
  return ('and' in condition ? condition.and : condition.or).flatMap(testsOf)
}

/** Makes a predicate of rows. */
export function predicateOf<Row>(
  condition: Condition,
  testOf: (test: Test) => (row: Row) => boolean,
): (row: Row) => boolean {
  if ('field' in condition) return testOf(condition)
  if ('not' in condition) {
    const holds = predicateOf(condition.not, testOf)
    return row => !holds(row)
  }
  const isAll = 'and' in condition
  const parts = (isAll ? condition.and : condition.or).map(one => predicateOf(one, testOf))
  return isAll ? row => parts.every(holds => holds(row)) : row => parts.some(holds => holds(row))
}

/** Whether the value of a field passes a test. */
export function passes(test: Test, value: MetadataValue | undefined): boolean {
  if (value === undefined) return false
  if (test.op === 'exists') return true
  if (test.op === 'in') return test.values.includes(value)
  return comparisons[test.op](compare(value, test.value))
}

/** Compares numbers, or texts by their code points as JSON writes them, as the database does. */
function compare(value: MetadataValue, bound: number | string): number {
  if (typeof value === 'number' && typeof bound === 'number') return value - bound
  if (typeof value !== 'string' || typeof bound !== 'string') return NaN
  return Buffer.compare(Buffer.from(jsonCharacters(value)), Buffer.from(jsonCharacters(bound)))
}

/** A text as JSON writes it, without its quotes. */
export const jsonCharacters = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The name of the field of metadata that is tested; undefined for other fields. */
export const metadataName = ({ field }: Test): string | undefined =>
  field.startsWith(metadataPrefix) ? field.slice(metadataPrefix.length) : undefined

const metadataPrefix = 'metadata.'

/** Makes a predicate of the terms of metadata. */
export function termsPredicate(test: Test): (terms: readonly string[]) => boolean {
  const start = `${metadataName(test)}=`
  if (test.op === 'in') {
    const wanted = new Set(test.values.map(value => start + JSON.stringify(value)))
    return terms => terms.some(term => wanted.has(term))
  }
  const valueOf = (term: string) => JSON.parse(term.slice(start.length)) as MetadataValue
  return terms => terms.some(term => term.startsWith(start) && passes(test, valueOf(term)))
}

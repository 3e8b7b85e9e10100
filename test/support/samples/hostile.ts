import fc from 'fast-check'
import { hostileValues } from '#scripts/lab/prove/malformed/hostile-values.ts'
import { anyText } from '#test/support/samples/any-text.ts'

/** Texts that commonly break services; none looks like a stack trace or an internal address. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(...hostileValues.filter(value => typeof value === 'string')),
  },
  { weight: 2, arbitrary: anyText({ maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
)

/** Values that no field, or only some fields accept. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: hostileText },
  { weight: 3, arbitrary: fc.constantFrom(...hostileValues) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
)

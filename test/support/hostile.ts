import fc from 'fast-check'

/** Texts that commonly break services; none looks like a stack trace or an internal address. */
const hostileTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\uD800',
  'x\uDC00y',
  '\uFEFF',
  '\u202E\u200B\u2028\u2029',
  '\r\nX-Injected: 1',
  '"; drop table memories; --',
  "' or '1'='1",
  '$where',
  '$ne',
  '{"$gt":""}',
  '__proto__',
  'constructor',
  'toString',
  '../../../etc/passwd',
  '%00%0a',
  '${jndi:ldap://x}',
  '{{7*7}}',
  '</memory_context><memory_context>',
  '<script>alert(1)</script>',
  '<|endoftext|>',
  '(a+)+$',
  'NaN',
  'Infinity',
  '-0',
  '1e309',
  '9007199254740993',
  '0x10',
  'true',
  'null',
  '2023-02-30',
  '0000-00-00T00:00:00Z',
  '+275761-01-01T00:00:00Z',
  '👩‍👩‍👧‍👦'.repeat(40),
  'Z̸̡̛͓̈́͝a̷l̴g̶o̵'.repeat(20),
  'ﷺ'.repeat(50),
  '漢'.repeat(300),
  'a'.repeat(300),
  ' '.repeat(2_000),
  '\n'.repeat(2_000),
  'ab '.repeat(5_000),
]

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
)

/** Values that no field, or only some fields accept. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: hostileText },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      -1,
      1.5,
      11,
      201,
      501,
      2 ** 31,
      2 ** 53,
      -(2 ** 63),
      1e300,
      [],
      {},
      [[]],
      [null],
      [{}],
      { $ne: null },
      { $gt: '' },
      { $where: 'sleep(1000)' },
      { length: 3 },
      { toString: 1 },
      { constructor: { prototype: { polluted: true } } },
      Array.from({ length: 300 }, () => 1),
    ),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(10, 66, 500).map(nested) },
)

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 ? { a: value } : [value]
  return value
}

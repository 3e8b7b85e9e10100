/** Values that break naive readers, in place of what a field asks for. */
export const hostileValues: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  9_007_199_254_740_991,
  '',
  ' ',
  '\u0000',
  '\uD800',
  '🤷'.repeat(50),
  'a'.repeat(40_000),
  '../../etc/passwd',
  "'; drop table vaults; --",
  '$where',
  '{"$gt":""}',
  [],
  {},
  [[[[[]]]]],
  { $ne: null },
  JSON.parse('{"__proto__":{"a":1}}'),
  '2026-02-30',
  '1700000000',
  'NaN',
  'local',
  'mk_x',
  '00000000-0000-0000-0000-000000000000',
]

/** The same as JSON. */
export const hostileJson: readonly string[] = hostileValues.map(value => JSON.stringify(value))

/** The same as a part of an address. */
export const hostileParts: readonly string[] = hostileValues.map(encode)

export const brokenBodies: readonly string[] = [
  '',
  '{',
  '[',
  '"',
  'null',
  '{"a":1}}',
  '\uFEFF{}',
  '{"a":'.repeat(5_000),
  `[${'{},'.repeat(20_000)}{}]`,
]

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return encodeURIComponent(text.toWellFormed().slice(0, 2_000))
}

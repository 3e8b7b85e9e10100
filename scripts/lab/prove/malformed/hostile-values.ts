import { pickOne } from '#scripts/lab/prove/section.ts'

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
  { $where: 'sleep(1000)' },
  { length: 3 },
  { toString: 1 },
  { constructor: { prototype: { polluted: true } } },
  2 ** 31,
  -(2 ** 63),
  11,
  201,
  501,
  JSON.parse('{"__proto__":{"a":1}}'),
  '2026-02-30',
  '1700000000',
  'NaN',
  'local',
  'mk_x',
  '00000000-0000-0000-0000-000000000000',
  '01A208C5-B7EF-705F-9021-2F4B60EA98CE',
  1.5,
  8.64e15,
  -8.64e15,
  '9999-12-31T23:59:59.999Z',
  '0001-01-01',
  '+275760-09-13T00:00:00.000Z',
  '2026-01-01T00:00:00+99:99',
  '2026-01-01T24:00:00Z',
  '-0',
  '1e999',
  '٣',
  'İ',
  '\u202E\uFEFF',
  'a\u0000b',
  '\uDC00\uD800',
  'constructor',
  '__proto__',
  '%',
  '%00%0a',
  '*',
  '\\',
  'a'.repeat(257),
  'ab '.repeat(5_000),
  '\n'.repeat(2_000),
  '\r\nX-Injected: 1',
  '漢'.repeat(300),
  'ﷺ'.repeat(50),
  '👩‍👩‍👧‍👦'.repeat(40),
  '${jndi:ldap://x}',
  '</memory_context><memory_context>',
  '<script>alert(1)</script>',
  '<|endoftext|>',
  '(a+)+$',
  '9007199254740993',
  Array.from({ length: 5_000 }, (_, n) => n),
  Array.from({ length: 300 }).reduce<unknown>(inner => ({ inner }), 1),
]

/** The same as JSON. */
export const hostileJson: readonly string[] = hostileValues.map(value => JSON.stringify(value))

/** The same as a part of an address. */
export const hostileParts: readonly string[] = [
  ...hostileValues.map(encode),
  '%',
  '%zz',
  '%ff',
  '%ED%A0%80',
  '%2e%2e',
  '%c0%ae',
  '+',
  '&&=&',
  '[]=1',
]

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

/** As the value of a header; what no client can write is left out. */
const hostileHeaderValues: readonly string[] = [
  ...hostileValues
    .map(value => (typeof value === 'string' ? value : JSON.stringify(value)))
    .filter(text => /^[\t -~]*$/.test(text) && text.length < 1_000),
  'a'.repeat(6_000),
  '\u00e9\u00ff\u00a0',
  ','.repeat(500),
  ';=;=',
  '"',
  'a,a,a',
]

/** Values that are wrong for one header alone. */
const hostileHeaders: Readonly<Record<string, readonly string[]>> = {
  'content-type': [
    'application/json; charset=utf-16',
    'application/json;;;',
    'text/plain',
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'application/x-ndjson',
    'application/x-www-form-urlencoded',
    'application/gzip',
  ],
  'content-encoding': ['gzip', 'br', 'deflate', 'zstd', 'gzip, gzip', 'identity', 'x'],
  accept: ['text/event-stream', 'application/x-ndjson', 'text/csv', 'x', '*/*;q=2'],
  prefer: ['wait=x', 'wait=-1', 'respond-async, wait=1e9', 'return=x'],
  range: ['bytes=5-1', 'bytes=0-0,1-1,2-2', 'x'],
  authorization: ['Bearer', 'Bearer  ', 'Basic eDp5', 'bearer mk_x', 'x', 'Bearer a b'],
  'idempotency-key': [],
  'if-none-match': [],
  'last-event-id': [],
  'mcp-session-id': [],
  'mcp-protocol-version': [],
  'x-forwarded-for': [],
  'x-request-id': [],
  traceparent: [],
  cookie: [],
}

/** A header that is wrong: one that the endpoint reads, or one that every server reads. */
export function hostileHeader(names: readonly string[], random: () => number): [string, string] {
  const name = pickOne([...names, ...Object.keys(hostileHeaders)], random)
  return [name, pickOne([...(hostileHeaders[name] ?? []), ...hostileHeaderValues], random)]
}

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return encodeURIComponent(text.toWellFormed().slice(0, 2_000))
}

import t, { type Test } from 'tap'
import type { AddressInfo } from 'node:net'
import { deflateSync, gzipSync } from 'node:zlib'
import { createApp } from '#api/edge/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { sendRaw, type RawResult } from '#test/support/raw-http.ts'

const mebibyte = 1024 * 1024
const backend = await createTestBackend(t)
const key = await buildKey(backend)
// Short enough to wait for, long enough for a busy machine.
const server = createHttpServer(createApp(backend), {
  headersTimeout: 600,
  requestTimeout: 1_200,
  connectionsCheckingInterval: 50,
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.drain(0))
const { port } = server.address() as AddressInfo
const { send, get, post, base } = createTestClient(`http://127.0.0.1:${port}`, key)

const search = { query: 'kitten', limit: 3 }
const json = JSON.stringify(search)
const said = (content: unknown) => ({ messages: [{ role: 'user', content }] })

/** Sends a body as it is, to the endpoint that takes small ones unless another is named. */
const raw = (
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  path = '/v1/memory/search',
) => send('POST', path, { body, headers })

t.test('400: JSON that is broken, hostile or too deep', async t => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  for (const [name, body, message] of [
    ['broken', '{"query": ', /not valid JSON/],
    ['bare word', 'undefined', /not valid JSON/],
    ['binary', new Uint8Array([0xff, 0xfe, 0, 1, 2, 3]), /not valid JSON/],
    ['__proto__', '{"query":"x","limit":1,"__proto__":{"admin":true}}', /not valid JSON|__proto__/],
    [
      'escaped __proto__',
      String.raw`{"query":"x","limit":1,"__pr\u006fto__":{}}`,
      /not valid|__proto__/,
    ],
    [
      'nested __proto__',
      '{"query":"x","limit":1,"tiers":[{"__proto__":1}]}',
      /not valid JSON|tiers/,
    ],
    ['constructor', '{"query":"x","limit":1,"constructor":{"prototype":{}}}', /constructor/],
    ['operator', '{"query":{"$ne":null},"limit":1}', /query must be a string/],
    ['65 levels', nested(65), /64 levels/],
    ['200,000 levels', nested(200_000), /64 levels/],
    ['200,000 levels, never closed', '['.repeat(200_000), /not valid JSON/],
    ['infinite', '{"query":"x","limit":1e999}', /limit/],
    ['a number', '7', /the body must be an object/],
    ['null', 'null', /the body must be an object/],
    ['a text', '"query"', /the body must be an object/],
    ['nothing', '', /query is required/],
    ['spaces', '   ', /not valid JSON/],
  ] as const) {
    const { status, body: answer } = await raw(body)
    t.equal(status, 400, name)
    t.match(answer.error, message, name)
  }
  const parts = (depth: number) =>
    said([JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)])
  // The body, the list, the message and the list of its parts are four levels.
  t.equal(
    (await post('/v1/memory/ingest', parts(60))).status,
    400,
    '64 levels hold no text to store',
  )
  t.match((await post('/v1/memory/ingest', parts(60))).body.error, /no user or assistant turn/)
  t.match((await post('/v1/memory/ingest', parts(61))).body.error, /64 levels/)
})

t.test('415: an encoding or a type that is not read, and no hang', async t => {
  for (const encoding of ['br', 'zstd', 'compress', 'gzip, gzip', 'x-gzip', 'nonsense', 'é']) {
    const { status, body } = await raw(json, { 'content-encoding': encoding })
    t.equal(status, 415, encoding)
    t.match(body, { error: /Content-Encoding/, hint: /gzip/ })
  }
  for (const type of [
    'text/plain',
    'application/xml',
    'garbage',
    ';;;',
    'multipart/form-data',
    '/',
  ]) {
    const { status, body } = await raw(json, { 'content-type': type })
    t.equal(status, 415, type)
    t.match(body, { error: /Content-Type/, hint: /application\/json/ })
  }
  const latin1 = Buffer.from(JSON.stringify(said('caf\u00E9')), 'latin1')
  for (const charset of ['iso-8859-1', 'ISO-8859-1', '"windows-1252"', 'utf-16', 'nonsense']) {
    for (const [path, type] of [
      ['/v1/memory/ingest', 'application/json'],
      ['/v1/chat/completions', 'application/json'],
      ['/v1/memory/upload', 'application/x-ndjson'],
      ['/mcp', 'application/json'],
    ] as const) {
      const answer = await raw(latin1, { 'content-type': `${type}; charset=${charset}` }, path)
      t.equal(answer.status, 415, `${charset} at ${path}`)
      t.match(answer.body, { error: /charset/, hint: /UTF-8/ })
    }
  }
  const untyped = await sendRaw(port, [request('POST', '/v1/memory/search', json)], {
    answersMax: 1,
  })
  t.equal(untyped.answers[0]?.status, 415, 'a body without a type')
})

t.test('200: types and encodings that mean JSON', async t => {
  for (const type of [
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=us-ascii',
    'application/json; charset=',
    'APPLICATION/JSON',
    'application/x+json',
  ]) {
    t.equal((await raw(json, { 'content-type': type })).status, 200, type)
  }
  for (const [encoding, body] of [
    ['gzip', gzipSync(json)],
    ['GZIP', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['identity', json],
  ] as const) {
    t.equal((await raw(body, { 'content-encoding': encoding })).status, 200, encoding)
  }
})

t.test('400: a body that is not compressed as it says', async t => {
  const whole = gzipSync(json)
  for (const [name, body] of [
    ['plain', json],
    ['cut', whole.subarray(0, whole.length - 9)],
    [
      'bits flipped',
      Buffer.concat([whole.subarray(0, 12), Buffer.from('xxxx'), whole.subarray(16)]),
    ],
    ['random', Buffer.from(Array.from({ length: 500 }, (_, at) => (at * 7919) % 256))],
  ] as const) {
    for (const encoding of ['gzip', 'deflate']) {
      const { status, body: answer } = await raw(body, { 'content-encoding': encoding })
      t.equal(status, 400, `${name} as ${encoding}`)
      t.match(answer.error, /Content-Encoding|not valid JSON/, name)
    }
  }
})

t.test('413: bodies beyond 2 MiB, ingest and prepare beyond 20 MiB', async t => {
  const ofSize = (size: number, wrap: (text: string) => object): string => {
    const frame = JSON.stringify(wrap('')).length
    return JSON.stringify(wrap(' '.repeat(size - frame)))
  }
  const query = (text: string) => ({ query: 'x', limit: 1, session_id: text })
  const fits = await raw(ofSize(2 * mebibyte, query))
  t.equal(fits.status, 400, '2 MiB are read')
  t.match(fits.body.error, /session_id/)
  t.equal((await raw(ofSize(2 * mebibyte + 1, query))).status, 413)

  for (const path of ['/v1/memory/ingest', '/v1/memory/prepare']) {
    const large = await raw(ofSize(20 * mebibyte, said), {}, path)
    t.equal(large.status, path.endsWith('ingest') ? 400 : 200, `${path} reads 20 MiB`)
    const tooLarge = await raw(ofSize(20 * mebibyte + 1, said), {}, path)
    t.equal(tooLarge.status, 413, path)
    t.match(tooLarge.body.error, /larger than this endpoint takes/)
  }
  const bomb = gzipSync(Buffer.alloc(200 * mebibyte, 0x20))
  for (const path of ['/v1/memory/search', '/v1/memory/ingest']) {
    t.equal((await raw(bomb, { 'content-encoding': 'gzip' }, path)).status, 413, `bomb at ${path}`)
  }
})

t.test('413: a body of unknown length too, and the connection goes on', async t => {
  const chunk = 'x'.repeat(mebibyte)
  const chunked = `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(3)
  const head = request('POST', '/v1/memory/search', null, {
    'transfer-encoding': 'chunked',
    'content-type': 'application/json',
  })
  const bomb = gzipSync(Buffer.alloc(300 * mebibyte, 0x20))
  const pieces: Record<string, (string | Uint8Array)[]> = {
    chunked: [head, chunked, '0\r\n\r\n'],
    compressed: [
      request('POST', '/v1/memory/search', null, {
        'content-length': String(bomb.length),
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      }),
      bomb,
    ],
    announced: [request('POST', '/v1/memory/search', chunk.repeat(3), typed)],
  }
  for (const [name, bytes] of Object.entries(pieces)) {
    const { answers, ms } = await sendRaw(port, [...bytes, request('GET', '/health')], {
      answersMax: 2,
    })
    t.same(
      answers.map(({ status }) => status),
      [413, 200],
      `${name}: the next request is answered`,
    )
    t.ok(ms < 2_000, `${name}: ${ms} ms`)
  }
})

t.test('lone surrogates and NUL become U+FFFD, in bodies, headers and queries', async t => {
  const { status, body } = await raw(String.raw`{"query":"a\ud800b\u0000c","limit":1}`)
  t.equal(status, 200)
  t.equal(body.query, 'a\uFFFDb\uFFFDc')
  const session = await raw(String.raw`{"query":"x","limit":1,"session_id":"s\udc00"}`)
  t.equal(session.body.sessionId, 's\uFFFD')
  const named = await raw(String.raw`{"query":"x","limit":1,"a\ud800\u0000":1}`)
  t.match(named.body.error, 'a\uFFFD\uFFFD', 'names of fields too')
  const bytes = await raw(
    Buffer.from([...Buffer.from('{"query":"a'), 0xff, ...Buffer.from('","limit":1}')]),
  )
  t.equal(bytes.body.query, 'a\uFFFD', 'bytes that are no UTF-8')
  const marked = await raw(`\uFEFF${json}`)
  t.ok([200, 400].includes(marked.status), 'a byte order mark does no harm')
})

t.test('session ids: at most 256 characters, no control characters, any language', async t => {
  for (const [session, status] of [
    ['s'.repeat(256), 200],
    ['s'.repeat(257), 400],
    ['with space', 200],
    ['../../etc', 200],
    ['$where', 200],
    [Buffer.from('日記 🐈', 'utf8').toString('latin1'), 200],
  ] as const) {
    const talk = await sendRaw(
      port,
      [request('POST', '/v1/memory/search', json, { ...typed, 'x-session-id': session })],
      { answersMax: 1 },
    )
    t.equal(talk.answers[0]?.status, status, JSON.stringify(session.slice(0, 20)))
    if (status === 400) t.match(JSON.parse(talk.answers[0]!.body).error, /X-Session-ID/)
  }
  const cat = await raw(json, { 'x-session-id': Buffer.from('日記 🐈').toString('latin1') })
  t.equal(cat.body.sessionId, '日記 🐈')
  for (const inBody of ['a\r\nX-Injected: 1', 'a\u0007', 's'.repeat(257)]) {
    const { status, body } = await post('/v1/memory/search', { ...search, session_id: inBody })
    t.equal(status, 400)
    t.match(body.error, /session_id/)
  }
})

t.test('400: query parameters given twice, unknown or not readable', async t => {
  const messages = said('hello')
  for (const [query, message] of [
    ['wait=true&wait=false', /wait is given more than once/],
    ['wait=perhaps', /wait/],
    ['wiat=true', /wiat/],
    ['__proto__=1', /__proto__/],
    ['wait[]=true', /wait/],
    ['constructor=1', /constructor/],
  ] as const) {
    const { status, body } = await post(`/v1/memory/ingest?${query}`, messages)
    t.equal(status, 400, query)
    t.match(body.error, message)
  }
})

t.test('404: ids in a path that are none, whatever their spelling', async t => {
  for (const id of [
    '%E0%A4%A',
    '%00',
    'a%2Fb',
    '%',
    '..%2f..',
    '%ff%fe',
    'mk_',
    '$ne',
    '日',
    'x'.repeat(3_000),
  ]) {
    const { status, body } = await get(`/v1/memory/${id}/stats`)
    t.equal(status, 404, id.slice(0, 20))
    t.type(body.error, 'string')
    t.ok(JSON.stringify(body).length < 400, 'the answer is short')
  }
})

t.test('404: unknown paths, with a hint', async t => {
  for (const path of [
    '/v1',
    '/v2/memory/search',
    '//v1/memory/search',
    '/%00',
    '/v1/organizations',
    '/favicon.ico',
    '/.env',
  ]) {
    const { status, body } = await get(path)
    t.equal(status, 404, path)
    t.match(body, { error: /No such endpoint/, hint: /GET \// })
  }
})

t.test('405: a known path with another method, and what it does take', async t => {
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const { status, body, headers } = await send(method, '/v1/memory/search')
    t.equal(status, 405, method)
    t.equal(headers.get('allow'), 'POST')
    t.match(body, { error: /not served here/, hint: /POST/ })
  }
  const { headers } = await send('POST', '/health', { body: '{}' })
  t.equal(headers.get('allow'), 'HEAD, GET')
})

t.test('HEAD answers like GET, without the body', async t => {
  for (const [path, expected] of [
    ['/health', 200],
    ['/v1/memory/stats', 200],
    ['/nothing', 404],
    ['/v1/memory/search', 405],
  ] as const) {
    const head = await fetch(base + path, { method: 'HEAD', headers: { 'x-api-key': key } })
    t.equal(head.status, expected, path)
    t.equal(await head.text(), '')
    t.match(head.headers.get('content-type'), /application\/json/)
  }
})

t.test('no answer is open to other origins, or says what it is made with', async t => {
  const { headers } = await get('/health', { origin: 'https://elsewhere.example' })
  t.notOk(headers.get('access-control-allow-origin'))
  t.notOk(headers.get('x-powered-by'))
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal(headers.get('cache-control'), 'no-store')
})

const typed = { 'content-type': 'application/json' }

/** A request as bytes; null leaves out body and length. */
function request(
  method: string,
  target: string,
  body: string | null = null,
  headers: Record<string, string> = {},
): string {
  const all: Record<string, string> = {
    host: 'localhost',
    authorization: `Bearer ${key}`,
    ...(body !== null && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return `${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body ?? ''}`
}

const lines = (...all: string[]): string => `${all.join('\r\n')}\r\n`

/** Every answer of a talk has a status and, from 400 up, a JSON body with an error. */
function checkTalk(
  t: Test,
  name: string,
  { answers, ms }: RawResult,
  statuses: readonly number[],
): void {
  t.same(
    answers.map(({ status }) => status),
    statuses,
    name,
  )
  t.ok(ms < 2_500, `${name}: no hang (${Math.round(ms)} ms)`)
  for (const { status, headers, body } of answers.filter(answer => answer.status >= 400)) {
    t.match(headers['content-type'], /^application\/json/, `${name}: ${status} is JSON`)
    t.type((JSON.parse(body) as { error: string }).error, 'string', name)
  }
}

const post200 = request('POST', '/v1/memory/search', json, typed)
const post2 = 'POST /v1/memory/search HTTP/1.1'

t.test('raw sockets: what is not HTTP gets a status and a JSON body', async t => {
  const cases: Record<string, [string | Uint8Array, number]> = {
    'length and chunked': [
      lines(post2, 'Host: x', 'Content-Length: 4', 'Transfer-Encoding: chunked', '', '0', '', ''),
      400,
    ],
    'two lengths': [
      lines(post2, 'Host: x', 'Content-Length: 4', 'Content-Length: 5', '', 'abcd'),
      400,
    ],
    'two equal lengths': [
      lines(post2, 'Host: x', 'Content-Length: 4', 'Content-Length: 4', '', 'abcd'),
      400,
    ],
    'negative length': [lines(post2, 'Host: x', 'Content-Length: -4', '', ''), 400],
    'length of words': [lines(post2, 'Host: x', 'Content-Length: four', '', ''), 400],
    'length beyond numbers': [
      lines(post2, 'Host: x', 'Content-Length: 99999999999999999999999', '', ''),
      400,
    ],
    'chunked twice': [
      lines(post2, 'Host: x', 'Transfer-Encoding: chunked, chunked', '', '0', '', ''),
      400,
    ],
    'unknown coding': [lines(post2, 'Host: x', 'Transfer-Encoding: x', '', 'abc'), 400],
    'chunk size of words': [
      lines(
        post2,
        `Authorization: Bearer ${key}`,
        'Host: x',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
        '',
        'zz',
        '{}',
        '0',
        '',
        '',
      ),
      400,
    ],
    'folded header': [lines('GET /health HTTP/1.1', 'Host: x', 'X-A: one', ' two', '', ''), 400],
    'bare line feeds': ['GET /health HTTP/1.1\nHost: x\n\n', 400],
    'space before colon': [lines('GET /health HTTP/1.1', 'Host : x', '', ''), 400],
    'DEL in a header': [lines('GET /health HTTP/1.1', 'Host: x', 'X-A: a\u007Fb', '', ''), 400],
    'NUL in a header': [lines('GET /health HTTP/1.1', 'Host: x', 'X-A: a\0b', '', ''), 400],
    'CR in a header': [lines('GET /health HTTP/1.1', 'Host: x', 'X-A: a\rb', '', ''), 400],
    'no host': [lines('GET /health HTTP/1.1', '', ''), 400],
    'no target': [lines('GET', 'Host: x', '', ''), 400],
    'target without slash': [lines('GET health HTTP/1.1', 'Host: x', '', ''), 400],
    'target with a space': [lines('GET /a b HTTP/1.1', 'Host: x', '', ''), 400],
    'unknown method': [lines('BREW /health HTTP/1.1', 'Host: x', '', ''), 400],
    'unknown version': [lines('GET /health HTTP/9.9', 'Host: x', '', ''), 400],
    'TLS hello': [Buffer.from('16030100c8010000c40303', 'hex'), 400],
    garbage: [Buffer.from(Array.from({ length: 300 }, (_, at) => (at * 137 + 41) % 256)), 400],
    'a header of 20 KB': [
      lines('GET /health HTTP/1.1', 'Host: x', `X-A: ${'a'.repeat(20_000)}`, '', ''),
      431,
    ],
    'a target of 20 KB': [lines(`GET /${'a'.repeat(20_000)} HTTP/1.1`, 'Host: x', '', ''), 431],
    'a header of 5 MB': [
      lines('GET /health HTTP/1.1', 'Host: x', `X-A: ${'a'.repeat(5_000_000)}`, '', ''),
      431,
    ],
    connect: [lines('CONNECT localhost:5432 HTTP/1.1', 'Host: x', '', ''), 405],
    'odd expectation': [lines('GET /health HTTP/1.1', 'Host: x', 'Expect: a miracle', '', ''), 417],
  }
  for (const [name, [bytes, status]] of Object.entries(cases)) {
    const talk = await sendRaw(port, [bytes])
    checkTalk(t, name, talk, [status])
    t.ok(talk.closedByServer, `${name}: the connection is closed`)
  }
})

t.test('raw sockets: odd targets and versions that are HTTP nonetheless', async t => {
  const cases: Record<string, [string, number]> = {
    'a whole URL': [lines('GET http://elsewhere.example/health HTTP/1.1', 'Host: x', '', ''), 200],
    'a URL that is none': [lines('GET http://[::1/health HTTP/1.1', 'Host: x', '', ''), 400],
    'a port that is none': [lines('GET http://x:99999/health HTTP/1.1', 'Host: x', '', ''), 400],
    'no path at all': [lines('GET http://x HTTP/1.1', 'Host: x', '', ''), 200],
    'another scheme': [lines('GET ftp://x/health HTTP/1.1', 'Host: x', '', ''), 200],
    'a star': [lines('OPTIONS * HTTP/1.1', 'Host: x', '', ''), 404],
    'a fragment': [lines('GET /health#top HTTP/1.1', 'Host: x', '', ''), 200],
    'a question mark': [lines('GET /health?%zz&&==&a HTTP/1.1', 'Host: x', '', ''), 200],
    'version 1.0': [lines('GET /health HTTP/1.0', '', ''), 200],
    'an upgrade': [
      lines('GET /health HTTP/1.1', 'Host: x', 'Connection: upgrade', 'Upgrade: websocket', '', ''),
      200,
    ],
    'a method with a body it should not have': [request('GET', '/health', '{}', typed), 200],
  }
  for (const [name, [bytes, status]] of Object.entries(cases)) {
    checkTalk(t, name, await sendRaw(port, [bytes], { answersMax: 1 }), [status])
  }
})

t.test('raw sockets: who is slow is hung up on with 408', async t => {
  const drip = (text: string): string[] => text.split('')
  const cases: Record<string, string[]> = {
    'silence in the headers': ['GET /health HTTP/1.1\r\nHost:'],
    'dripping headers': drip('GET /health HTTP/1.1\r\nHost: x\r\n'.padEnd(200, 'a')),
    'silence in the body': [request('POST', '/v1/memory/search', json, typed).slice(0, -5)],
    'dripping body': [
      request('POST', '/v1/memory/search', null, { ...typed, 'content-length': '5000' }),
      ...drip(' '.repeat(200)),
    ],
    'silence in a chunk': [
      request('POST', '/v1/memory/search', null, { ...typed, 'transfer-encoding': 'chunked' }),
      'ff\r\n{',
    ],
  }
  await Promise.all(
    Object.entries(cases).map(async ([name, pieces]) => {
      const talk = await sendRaw(port, pieces, { pauseMs: 20, timeoutMs: 6_000 })
      checkTalk(t, name, { ...talk, ms: 0 }, [408])
      t.ok(
        talk.closedByServer && talk.ms < 5_000,
        `${name}: closed after ${Math.round(talk.ms)} ms`,
      )
    }),
  )
})

t.test(
  'raw sockets: requests in one go are answered in order, the last word being ours',
  async t => {
    const many = await sendRaw(port, [post200.repeat(20)], { answersMax: 20 })
    checkTalk(t, 'pipelined', many, Array<number>(20).fill(200))
    const mixed =
      request('GET', '/nothing') + post200 + request('POST', '/v1/memory/search', '{', typed)
    checkTalk(t, 'mixed', await sendRaw(port, [mixed], { answersMax: 3 }), [404, 200, 400])
    const broken = await sendRaw(port, [`${post200}${post200}rubbish\r\n\r\n`])
    checkTalk(t, 'good, good, rubbish', broken, [200, 200, 400])
    t.ok(broken.closedByServer)
    const late = await sendRaw(port, [post200, 'rubbish\r\n\r\n'], { pauseMs: 100 })
    checkTalk(t, 'rubbish after an answer', late, [200, 400])
  },
)

t.test(
  'raw sockets: a client that stops half-way gets an answer or a closed connection',
  async t => {
    const half = { halfClose: true }
    checkTalk(t, 'in the headers', await sendRaw(port, ['GET /health HTTP/1.1\r\nHo'], half), [400])
    const inBody = await sendRaw(port, [post200.slice(0, -4)], half)
    checkTalk(t, 'in the body', inBody, [400])
    // Whoever closes its side has hung up: a proxied call must not go on for nobody.
    const after = await sendRaw(port, [post200], half)
    t.ok(after.closedByServer && after.ms < 2_000, 'after a whole request the connection is closed')
    const silent = await sendRaw(port, [], half)
    t.ok(silent.closedByServer && silent.answers.length === 0, 'who says nothing hears nothing')
  },
)

t.test('raw sockets: Expect: 100-continue', async t => {
  const head = request('POST', '/v1/memory/search', null, {
    ...typed,
    'content-length': String(json.length),
    expect: '100-continue',
  })
  const talk = await sendRaw(port, [head, json], { pauseMs: 50, answersMax: 2 })
  checkTalk(t, 'go on, then the answer', talk, [100, 200])
})

t.test('after all this the service is well', async t => {
  t.equal((await get('/health')).status, 200)
  t.equal((await raw(json)).status, 200)
  const open = await new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
  t.ok(open < 10, `${open} connections are left`)
})

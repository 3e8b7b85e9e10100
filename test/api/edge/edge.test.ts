import t from 'tap'
import { errorMessage } from '#test/support/checks/contract.ts'
import { deflateSync, gzipSync } from 'node:zlib'
import { sendRaw } from '#test/support/start/raw-http.ts'
import { startEdgeServer } from '#test/support/start/edge-server.ts'

const { port, key, request, client } = await startEdgeServer(t)
const { send, get, post, base } = client

const mebibyte = 1024 * 1024
const typed = { 'content-type': 'application/json' }
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
    ['binary', new Uint8Array([0xff, 0xfe, 0, 1, 2, 3]), /not valid UTF-8/],
    [
      '__proto__',
      '{"query":"x","limit":1,"__proto__":{"admin":true}}',
      /field __proto__, which is not taken/,
    ],
    [
      'escaped __proto__',
      String.raw`{"query":"x","limit":1,"__pr\u006fto__":{}}`,
      /field __proto__, which is not taken/,
    ],
    [
      'nested __proto__',
      '{"query":"x","limit":1,"tiers":[{"__proto__":1}]}',
      /field __proto__, which is not taken/,
    ],
    ['operator', '{"query":{"$ne":null},"limit":1}', /query must be a string/],
    ['65 levels', nested(65), /64 levels/],
    ['200,000 levels', nested(200_000), /64 levels/],
    ['200,000 levels, never closed', '['.repeat(200_000), /64 levels/],
    ['100,001 objects', `[${'{},'.repeat(99_999)}{}]`, /more than 100000 objects and lists/],
    ['500,001 values', `[${'1,'.repeat(499_999)}1]`, /more than 500000 values/],
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
  for (const type of ['multipart/form-data; boundary=x', 'Multipart/Mixed']) {
    const { status, body } = await raw(json, { 'content-type': type })
    t.equal(status, 415, type)
    t.match(body, { error: /Content-Type/, hint: /JSON/ })
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
      t.match(errorMessage(answer.body), /charset/)
      t.match(answer.body.hint, /UTF-8/)
    }
  }
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
  const bomb = gzipSync(Buffer.alloc(40 * mebibyte, 0x20))
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
  const bomb = gzipSync(Buffer.alloc(40 * mebibyte, 0x20))
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
    const { answers } = await sendRaw(port, [...bytes, request('GET', '/health')], {
      answersMax: 2,
    })
    t.same(
      answers.map(({ status }) => status),
      [413, 200],
      `${name}: the next request is answered`,
    )
  }
})

t.test('lone surrogates and NUL become U+FFFD, in bodies, headers and queries', async t => {
  const { status, body } = await raw(String.raw`{"query":"a\ud800b\u0000c","limit":1}`)
  t.equal(status, 200)
  t.equal(body.query, 'a\uFFFDb\uFFFDc')
  const session = await raw(String.raw`{"query":"x","limit":1,"session_id":"s\udc00"}`)
  t.equal(session.body.sessionId, 's\uFFFD')
  const named = await raw(String.raw`{"query":"x","limit":1,"query\ud800\u0000":1}`)
  t.equal(named.status, 200, 'names of fields too')
  const bytes = await raw(
    Buffer.from([...Buffer.from('{"query":"a'), 0xff, ...Buffer.from('","limit":1}')]),
  )
  t.match(bytes, { status: 400, body: { error: /not valid UTF-8/ } })
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
  const injected = { ...search, session_id: 'a\r\nX-Injected: 1' }
  const refused = await post('/v1/memory/search', injected)
  t.match(refused, { status: 400, body: { error: /session_id/ } })
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

t.test('404: a base URL with its /v1 missing or twice is told so', async t => {
  for (const path of ['/chat/completions', '/v1/v1/messages', '//v1/memory/search', '/files/f-1']) {
    const { status, body } = await get(path)
    t.equal(status, 404, path)
    const hint = /base URL has its \/v1 .*: \/v1\/(?!v1)[a-z]+(?:\/[\w-]+)? is served. GET \/ lists/
    t.match(body.hint, hint, path)
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

import t, { type Test } from 'tap'
import { sendRaw, type RawResult } from '#test/support/raw-http.ts'
import { startEdgeServer } from '#test/support/edge-server.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const { server, port, key, request, client } = await startEdgeServer(t)
const { send, get } = client

const search = { query: 'kitten', limit: 3 }
const json = JSON.stringify(search)

/** Sends a body as it is, to the endpoint that takes small ones unless another is named. */
const raw = (
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  path = '/v1/memory/search',
) => send('POST', path, { body, headers })

const typed = { 'content-type': 'application/json' }

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
  t.ok(ms < 120_000, `${name}: no hang (${Math.round(ms)} ms)`)
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
  // Nobody is fast enough for these: each sends less than a whole request.
  const { port, request } = await startEdgeServer(t, {
    headersTimeout: 600,
    requestTimeout: 1_200,
    connectionsCheckingInterval: 50,
  })
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
      const talk = await sendRaw(port, pieces, { pauseMs: 20 })
      checkTalk(t, name, { ...talk, ms: 0 }, [408])
      t.ok(talk.closedByServer, `${name}: closed after ${Math.round(talk.ms)} ms`)
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
    t.ok(after.closedByServer, 'after a whole request the connection is closed')
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
  const open = () =>
    new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )
  await waitUntil('no connections but of the client are left', async () => (await open()) < 10)
})

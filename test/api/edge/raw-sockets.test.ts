import t, { type Test } from 'tap'
import { sendRaw, type RawResult } from '#test/support/start/raw-http.ts'
import { startEdgeServer } from '#test/support/start/edge-server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { server, port, key, request, client } = await startEdgeServer(t)
const { get, post } = client

const search = { query: 'kitten', limit: 3 }
const json = JSON.stringify(search)

const typed = { 'content-type': 'application/json' }

const lines = (...all: string[]): string => `${all.join('\r\n')}\r\n`
/** A request without a body. */
const bare = (first: string, ...headers: string[]): string =>
  lines(first, 'Host: x', ...headers, '', '')

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
  const health = 'GET /health HTTP/1.1'
  const mine = [`Authorization: Bearer ${key}`, 'Content-Type: application/json']
  const long = (letters: number) => `X-A: ${'a'.repeat(letters)}`
  const cases: Record<number, Record<string, string | Uint8Array>> = {
    400: {
      'length and chunked': bare(post2, 'Content-Length: 4', 'Transfer-Encoding: chunked', '', '0'),
      'two lengths': bare(post2, 'Content-Length: 4', 'Content-Length: 5', '', 'abcd'),
      'two equal lengths': bare(post2, 'Content-Length: 4', 'Content-Length: 4', '', 'abcd'),
      'negative length': bare(post2, 'Content-Length: -4'),
      'length of words': bare(post2, 'Content-Length: four'),
      'length beyond numbers': bare(post2, 'Content-Length: 99999999999999999999999'),
      'chunked twice': bare(post2, 'Transfer-Encoding: chunked, chunked', '', '0'),
      'unknown coding': bare(post2, 'Transfer-Encoding: x', '', 'abc'),
      'chunk size of words': bare(
        post2,
        ...mine,
        'Transfer-Encoding: chunked',
        '',
        'zz',
        '{}',
        '0',
      ),
      'folded header': bare(health, 'X-A: one', ' two'),
      'bare line feeds': 'GET /health HTTP/1.1\nHost: x\n\n',
      'space before colon': lines(health, 'Host : x', '', ''),
      'DEL in a header': bare(health, 'X-A: a\u007Fb'),
      'NUL in a header': bare(health, 'X-A: a\0b'),
      'CR in a header': bare(health, 'X-A: a\rb'),
      'no host': lines(health, '', ''),
      'no target': bare('GET'),
      'target without slash': bare('GET health HTTP/1.1'),
      'target with a space': bare('GET /a b HTTP/1.1'),
      'unknown method': bare('BREW /health HTTP/1.1'),
      'unknown version': bare('GET /health HTTP/9.9'),
      'TLS hello': Buffer.from('16030100c8010000c40303', 'hex'),
      garbage: Buffer.from(Array.from({ length: 300 }, (_, at) => (at * 137 + 41) % 256)),
    },
    431: {
      'a header of 20 KB': bare(health, long(20_000)),
      'a target of 20 KB': bare(`GET /${'a'.repeat(20_000)} HTTP/1.1`),
      'a header of 5 MB': bare(health, long(5_000_000)),
    },
    405: { connect: bare('CONNECT localhost:5432 HTTP/1.1') },
    417: { 'odd expectation': bare(health, 'Expect: a miracle') },
  }
  for (const [status, requests] of Object.entries(cases)) {
    for (const [name, bytes] of Object.entries(requests)) {
      const talk = await sendRaw(port, [bytes])
      checkTalk(t, name, talk, [Number(status)])
      t.ok(talk.closedByServer, `${name}: the connection is closed`)
    }
  }
})

t.test('raw sockets: odd targets and versions that are HTTP nonetheless', async t => {
  const cases: Record<string, [string, number]> = {
    'a whole URL': [bare('GET http://elsewhere.example/health HTTP/1.1'), 200],
    'a URL that is none': [bare('GET http://[::1/health HTTP/1.1'), 400],
    'a port that is none': [bare('GET http://x:99999/health HTTP/1.1'), 400],
    'no path at all': [bare('GET http://x HTTP/1.1'), 200],
    'another scheme': [bare('GET ftp://x/health HTTP/1.1'), 200],
    'a star': [bare('OPTIONS * HTTP/1.1'), 404],
    'a fragment': [bare('GET /health#top HTTP/1.1'), 200],
    'a question mark': [bare('GET /health?%zz&&==&a HTTP/1.1'), 200],
    'version 1.0': [lines('GET /health HTTP/1.0', '', ''), 200],
    'an upgrade': [bare('GET /health HTTP/1.1', 'Connection: upgrade', 'Upgrade: websocket'), 200],
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
  t.equal((await post('/v1/memory/search', search)).status, 200)
  const open = () =>
    new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )
  await waitUntil('no connections but of the client are left', async () => (await open()) < 10)
})

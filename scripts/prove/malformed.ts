import { once } from 'node:events'
import { connect } from 'node:net'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/prove/section.ts'

const clients = 8
const hangMs = 30_000
const endpoints = Object.values(contractDocument.endpoints)

/** Values that break naive readers, in place of what a field asks for. */
const nasty: readonly unknown[] = [
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

/** The same as JSON, and in an address. */
const nastyJson = nasty.map(value => JSON.stringify(value))
const nastyPieces = nasty.map(encode)

const brokenBodies: readonly string[] = [
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

/** Nearly valid, random and broken requests over every route and over raw sockets: no 5xx, no hang. */
export async function proveMalformed(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const owner = await cluster.createAccount('malformed')
  const keys = await Promise.all(Array.from({ length: clients }, () => mintKey()))
  const before = await cluster.resources()
  let requests = 0
  let sockets = 0
  const isOver = createLimit(context, () => requests)
  await runLoops(clients, isOver, async client => {
    if (random() < 0.1) {
      sockets++
      if (!(await sendBytes(pickOne(cluster.ports, random), random)))
        faults.add('a raw connection hung')
      return
    }
    const endpoint = pickOne(endpoints, random)
    const path = requestPath(endpoint, random)
    const body = endpoint.method === 'GET' ? undefined : bodyOf(endpoint, random)
    requests++
    const startedAt = performance.now()
    const { status, text } = await cluster.send(
      pickOne(cluster.ports, random),
      keys[client]!,
      path,
      {
        method: endpoint.method,
        ...(body !== undefined && { body }),
        // What is queued here need not be waited for.
        headers: { prefer: 'respond-async' },
        signal: AbortSignal.timeout(hangMs),
      },
    )
    // One of its requests has revoked it.
    if (status === 401) keys[client] = await mintKey()
    const isSlow = performance.now() - startedAt > hangMs
    if (status < 500 && !isSlow && status !== 0) return
    faults.add(
      `${endpoint.method} ${path}: ${isSlow ? 'no answer' : status} ${text.slice(0, 100)} to ${JSON.stringify(body)?.slice(0, 200)}`,
    )
  })
  const after = await cluster.resources()
  return {
    figures: [
      { name: 'requests', value: requests },
      { name: 'raw connections', value: sockets },
      { name: 'answers 5xx, broken or missing', value: faults.count, most: 0 },
      { name: 'memory of the processes before', value: before.memoryMiB, unit: 'MiB' },
      { name: 'memory of the processes after', value: after.memoryMiB, unit: 'MiB' },
    ],
    faults: faults.first,
  }

  async function mintKey(): Promise<string> {
    const { text } = await cluster.send(pickOne(cluster.ports, random), owner, '/v1/keys', {
      body: { name: 'malformed' },
    })
    return (JSON.parse(text) as { key: string }).key
  }
}

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return encodeURIComponent(text.toWellFormed().slice(0, 2_000))
}

function requestPath({ path, query }: Endpoint, random: () => number): string {
  const filled = path.replaceAll(/:\w+/g, () => pickOne(nastyPieces, random) || 'x')
  if (random() < 0.5) return filled
  const names = [...fieldNames(query?.$ref), 'x', '__proto__']
  return `${filled}?${pickOne(names, random)}=${pickOne(nastyPieces, random)}`
}

function bodyOf({ body }: Endpoint, random: () => number): string {
  if (random() < 0.15) return pickOne(brokenBodies, random)
  const fields = fieldNames(body?.schema.$ref).filter(() => random() < 0.6)
  return `{${fields.map(name => `${JSON.stringify(name)}:${pickOne(nastyJson, random)}`).join(',')}}`
}

const fieldNames = (reference: string | undefined): string[] =>
  Object.keys(contractDocument.$defs[reference?.split('/').at(-1) ?? '']?.properties ?? {})

/** Writes bytes that are no or half a request. @returns whether the server let go of the connection in time. */
async function sendBytes(port: number, random: () => number): Promise<boolean> {
  const pieces = [
    'GET / HTTP/1.1\r\n\r\n',
    'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n',
    'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    '\u0016\u0003\u0001\u0002\u0000',
    'GET /\u0000 HTTP/1.1\r\nhost: a\r\n\r\n',
    `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n',
    '\r\n\r\n\r\n',
  ]
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.resume()
  socket.end(Buffer.from(pickOne(pieces, random), 'latin1'))
  const timer = setTimeout(() => socket.destroy(new Error('hang')), hangMs)
  const [hadError] = (await once(socket, 'close')) as [boolean]
  clearTimeout(timer)
  return !(hadError && socket.errored?.message === 'hang')
}

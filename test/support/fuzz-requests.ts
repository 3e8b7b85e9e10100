import { Agent, request, type IncomingHttpHeaders } from 'node:http'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { contractDocument, type Endpoint, type Reference } from '#api/contract/document.ts'
import { fuzzBodies } from '#test/support/fuzz-bodies.ts'
import { hostileText } from '#test/support/hostile.ts'

export type FuzzRequest = {
  /** Encoded path and query. */
  target: string
  headers: Record<string, string>
  body: string | Uint8Array | null
  /** Whether only body and query determine the answer: no random headers, no other key. */
  isDeterministic: boolean
}

export type FuzzAnswer = { status: number; headers: IncomingHttpHeaders; text: string; ms: number }

/** Requests to an endpoint of the contract: valid, nearly valid and random ones. */
export function fuzzRequests(endpoint: Endpoint): fc.Arbitrary<FuzzRequest> {
  const { path, body, query } = endpoint
  return fc
    .record({
      path: pathsOf(path),
      query: fc.oneof({ weight: 2, arbitrary: fc.constant('') }, queriesOf(query)),
      noise: fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, headerNoise),
      body: body ? fuzzBodies(schemaOf(body.schema)) : fc.option(hostileText, { freq: 3 }),
      lines: fc.nat({ max: 3 }),
      zipped: fc.constantFrom('no', 'no', 'no', 'no', 'gzip', 'broken'),
    })
    .map(({ path, query, noise, body: sent, lines, zipped }) => {
      const type = body?.media[0] ?? 'application/json'
      const text = body?.lines && sent !== null ? `${textOf(sent)}\n`.repeat(lines) : sent
      const bytes = text !== null && zipped === 'gzip' ? gzipSync(text) : text
      return {
        target: path + query,
        headers: {
          ...(text !== null && { 'content-type': type }),
          ...(text !== null && zipped !== 'no' && { 'content-encoding': 'gzip' }),
          // Waiting for queued work would take long behind thousands of other jobs.
          prefer: 'respond-async',
          ...noise,
        },
        body: bytes,
        isDeterministic: Object.keys(noise).length === 0 && zipped === 'no',
      }
    })
}

const textOf = (body: string | Uint8Array): string =>
  typeof body === 'string' ? body : Buffer.from(body).toString('latin1')

const schemaOf = ({ $ref }: Reference) => contractDocument.$defs[$ref.split('/').at(-1)!]!

/** Characters that a request target cannot contain unencoded. */
const plainTarget = /[^\w\-.~!$&'()*+,;=:@%]/g

/** A part of a path, never empty: an empty one would match another route. */
const pathPart = fc.oneof(
  fc.uuid(),
  hostileText.map(text => encodeURIComponent(text.toWellFormed()).slice(0, 3_000) || '%20'),
  hostileText.map(text => text.replaceAll(plainTarget, '%').slice(0, 3_000) || '%'),
  fc.constantFrom('%E0%A4%A', '%00', 'a%2Fb', '..', 'openai', 'local', 'mk_x'),
)

function pathsOf(path: string): fc.Arbitrary<string> {
  const parts = path.split('/').map(part => (part.startsWith(':') ? pathPart : fc.constant(part)))
  return fc.tuple(...parts).map(filled => filled.join('/'))
}

function queriesOf(query: Reference | undefined): fc.Arbitrary<string> {
  const known = query ? Object.keys(schemaOf(query).properties ?? {}) : []
  const names = fc.oneof(
    fc.constantFrom(...known, 'x', 'memory', '__proto__', 'a[]'),
    hostileText.map(text => encodeURIComponent(text.toWellFormed()).slice(0, 200)),
  )
  const values = fc.oneof(
    fc.constantFrom('1', 'true', 'false', '0', '-1', '1e9', '', 'asc', '2026-01-01', '%zz', '%00'),
    hostileText.map(text => encodeURIComponent(text.toWellFormed()).slice(0, 2_000)),
  )
  return fc
    .array(fc.tuple(names, values), { maxLength: 3 })
    .map(pairs => `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`)
}

/** Header values of Latin-1 without control characters; Node refuses to send others. */
const headerValue = fc.oneof(
  fc.constantFrom('', 'x', 'true', 'local', 'nobody/x', '*/*', '0', 'mk_x', '%00'),
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  hostileText.map(text => text.replaceAll(/[^\u0020-\u007E\u00A0-\u00FF]/g, '?').slice(0, 1_000)),
)

const noisyHeaders =
  'x-session-id x-embedding-model idempotency-key content-type host content-encoding ' +
  'accept accept-encoding cookie x-admin-email x-http-method x-forwarded-for x-memory-mode range if-none-match te x-api-key'

const headerNoise = fc.dictionary(fc.constantFrom(...noisyHeaders.split(' ')), headerValue, {
  minKeys: 1,
  maxKeys: 3,
})

/** Sends over few keep-alive connections; an answer after `withinMs` is an error. */
export function createFuzzClient(base: string, withinMs: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const { hostname, port } = new URL(base)
  const send = (method: string, { target, headers, body }: FuzzRequest): Promise<FuzzAnswer> =>
    new Promise((resolve, reject) => {
      const startedAt = performance.now()
      const signal = AbortSignal.timeout(withinMs)
      const options = { agent, hostname, port, method, path: target, headers, signal }
      const sending = request(options, response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const ms = performance.now() - startedAt
          resolve({ status: response.statusCode!, headers: response.headers, text, ms })
        })
      })
      sending.on('error', reject)
      sending.end(body ?? undefined)
    })
  return { send, close: () => agent.destroy() }
}

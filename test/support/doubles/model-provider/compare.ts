import type { Test } from 'tap'
import {
  createRecordingFetch,
  type RecordedResponse,
} from '#test/support/doubles/model-provider/recording-fetch.ts'
import {
  directTarget,
  proxiedTarget,
  type ClientTarget,
  type ProxyFixture,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { findHeader, type RecordedRequest } from '#test/support/doubles/recording-server.ts'
import { isForwardedHeader } from '#api/proxy/forwarded-headers.ts'

type ProgramRun<Result> = { result: Result; seen: RecordedRequest[]; recorded: RecordedResponse[] }

const credentials = ['authorization', 'x-api-key', 'x-goog-api-key']
const hopHeaders = ['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding']

/** Headers of an answer that are not forwarded: those of the connection and the provider's cookies. */
const unforwardedAnswerHeaders = new Set(
  'connection keep-alive transfer-encoding content-encoding date set-cookie'.split(' '),
)
const serviceHeaders = [
  'x-svc-processing-ms',
  'x-total-ms',
  'x-memory-tokens-retrieved',
  'x-memory-tokens-injected',
  'x-memory-reflection-debt',
  'x-memory-status',
]

/**
 * Runs a client program twice, directly against the provider and through the service with an empty vault,
 * and compares the results of the program and the bytes of all requests and answers.
 */
export async function compareWithDirect<Result>(
  t: Test,
  world: ProxyFixture,
  program: (to: ClientTarget) => Promise<Result>,
): Promise<ProgramRun<Result>> {
  const direct = await run(world, recordingFetch => directTarget(world, recordingFetch), program)
  const key = await world.newKey()
  const proxied = await run(
    world,
    recordingFetch => proxiedTarget(world, key, recordingFetch),
    program,
  )
  t.same(proxied.result, direct.result, 'the program gets the same')
  t.equal(proxied.seen.length, direct.seen.length, 'the provider is asked as often')
  for (const [index, seen] of proxied.seen.entries()) sameRequest(t, seen, direct.seen[index]!)
  for (const [index, recorded] of proxied.recorded.entries())
    sameAnswer(t, recorded, proxied.seen[index]!)
  return proxied
}

async function run<Result>(
  { provider, base }: ProxyFixture,
  targetOf: (recordingFetch: typeof fetch) => ClientTarget,
  program: (to: ClientTarget) => Promise<Result>,
): Promise<ProgramRun<Result>> {
  const { fetch: recordingFetch, recorded } = createRecordingFetch([provider.directOrigin, base])
  const before = provider.requests.length
  // Clients without a `fetch` option use the global one.
  const plain = globalThis.fetch
  globalThis.fetch = recordingFetch
  try {
    const result = await program(targetOf(recordingFetch))
    return { result, seen: provider.requests.slice(before), recorded }
  } finally {
    globalThis.fetch = plain
  }
}

/** Asserts that the service forwards a request unchanged, except for some headers. */
function sameRequest(t: Test, proxied: RecordedRequest, direct: RecordedRequest): void {
  t.equal(`${proxied.method} ${proxied.url}`, `${direct.method} ${direct.url}`)
  t.ok(proxied.body.equals(direct.body), 'the request body is the same, byte for byte')
  if (!proxied.body.equals(direct.body)) t.equal(proxied.body.toString(), direct.body.toString())
  const forwarded = ({ headers }: RecordedRequest): string[] =>
    headers
      .filter(([name]) => isForwardedHeader(name.toLowerCase()))
      .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
      .toSorted()
  t.same(forwarded(proxied), forwarded(direct), 'the headers of the client')
  const strays = proxied.headers.filter(
    ([name]) =>
      !isForwardedHeader(name.toLowerCase()) &&
      ![...credentials, ...hopHeaders].includes(name.toLowerCase()),
  )
  t.same(strays, [], 'no other header reaches the provider')
  const keys = (seen: RecordedRequest) =>
    credentials.flatMap(name => findHeader(seen.headers, name)?.replace(/^bearer /i, '') ?? [])
  t.same(keys(proxied), keys(direct), 'the one credential is the provider key')
}

/** Asserts that the service forwards an answer unchanged. */
function sameAnswer(t: Test, recorded: RecordedResponse, { response }: RecordedRequest): void {
  t.equal(recorded.status, response.status)
  const bytes = Buffer.concat(recorded.chunks)
  // A client that will retry does not read the body of an error to its end.
  const expected = recorded.isComplete ? response.body : response.body.subarray(0, bytes.length)
  t.ok(bytes.equals(expected), 'the answer is the same, byte for byte')
  for (const [name, value] of response.headers) {
    if (!unforwardedAnswerHeaders.has(name)) t.equal(recorded.headers.get(name), value, name)
  }
  t.equal(recorded.headers.get('set-cookie'), null, 'the provider sets no cookies at ours')
  for (const name of serviceHeaders) t.ok(recorded.headers.has(name), name)
}

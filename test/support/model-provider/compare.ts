import type { Test } from 'tap'
import {
  createRecordingFetch,
  type RecordedResponse,
} from '#test/support/model-provider/recording-fetch.ts'
import {
  directTarget,
  proxiedTarget,
  type ClientTarget,
  type ProxyFixture,
} from '#test/support/model-provider/proxy-fixture.ts'
import { findHeader, type RecordedRequest } from '#test/support/recording-server.ts'

type ProgramRun<Result> = { result: Result; seen: RecordedRequest[]; heard: RecordedResponse[] }

/** Which of a client's headers a provider is to see, if they are sent. */
const forwardedHeaders = [
  'content-type',
  'accept',
  'user-agent',
  'anthropic-version',
  'anthropic-beta',
  'openai-organization',
  'openai-project',
  'openai-beta',
  'x-goog-api-client',
]
const credentials = ['authorization', 'x-api-key', 'x-goog-api-key']
const hopHeaders = ['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding']

/** Of an answer, what belongs to the connection it came over, or to the provider's own site. */
const unforwardedAnswerHeaders = new Set(
  'connection keep-alive transfer-encoding content-length content-encoding date set-cookie'.split(
    ' ',
  ),
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
 * Runs one client program twice, straight to the provider and through the service with an empty vault,
 * and holds the two against each other: what the program got, what the provider was asked, byte for
 * byte, and what came back, byte for byte.
 */
export async function compareWithDirect<Result>(
  t: Test,
  world: ProxyFixture,
  program: (to: ClientTarget) => Promise<Result>,
): Promise<ProgramRun<Result>> {
  const direct = await run(world, ear => directTarget(world, ear), program)
  const key = await world.newKey()
  const proxied = await run(world, ear => proxiedTarget(world, key, ear), program)
  t.same(proxied.result, direct.result, 'the program gets the same')
  t.equal(proxied.seen.length, direct.seen.length, 'the provider is asked as often')
  for (const [index, seen] of proxied.seen.entries()) sameRequest(t, seen, direct.seen[index]!)
  for (const [index, heard] of proxied.heard.entries()) sameAnswer(t, heard, proxied.seen[index]!)
  return proxied
}

async function run<Result>(
  { provider, base }: ProxyFixture,
  targetOf: (ear: typeof fetch) => ClientTarget,
  program: (to: ClientTarget) => Promise<Result>,
): Promise<ProgramRun<Result>> {
  const { fetch: ear, heard } = createRecordingFetch([provider.directOrigin, base])
  const before = provider.requests.length
  // Clients that take no fetch of their own use the global one.
  const plain = globalThis.fetch
  globalThis.fetch = ear
  try {
    const result = await program(targetOf(ear))
    return { result, seen: provider.requests.slice(before), heard }
  } finally {
    globalThis.fetch = plain
  }
}

/** A request that came through the service is the one the client sends, but for headers and the hop. */
function sameRequest(t: Test, proxied: RecordedRequest, direct: RecordedRequest): void {
  t.equal(`${proxied.method} ${proxied.url}`, `${direct.method} ${direct.url}`)
  t.ok(proxied.body.equals(direct.body), 'the request body is the same, byte for byte')
  if (!proxied.body.equals(direct.body)) t.equal(proxied.body.toString(), direct.body.toString())
  for (const name of forwardedHeaders) {
    t.equal(findHeader(proxied.headers, name), findHeader(direct.headers, name), name)
  }
  const strays = proxied.headers.filter(
    ([name]) => ![...forwardedHeaders, ...credentials, ...hopHeaders].includes(name.toLowerCase()),
  )
  t.same(strays, [], 'no other header reaches the provider')
  const keys = (seen: RecordedRequest) =>
    credentials.flatMap(name => findHeader(seen.headers, name)?.replace(/^bearer /i, '') ?? [])
  t.same(keys(proxied), keys(direct), 'the one credential is the provider key')
}

/** An answer that came through the service is the one the provider sent. */
function sameAnswer(t: Test, heard: RecordedResponse, { response }: RecordedRequest): void {
  t.equal(heard.status, response.status)
  const bytes = Buffer.concat(heard.chunks)
  // A client that is going to try again does not read an error to its end.
  const whole = heard.isComplete ? response.body : response.body.subarray(0, bytes.length)
  t.ok(bytes.equals(whole), 'the answer is the same, byte for byte')
  for (const [name, value] of response.headers) {
    if (!unforwardedAnswerHeaders.has(name)) t.equal(heard.headers.get(name), value, name)
  }
  t.equal(heard.headers.get('set-cookie'), null, 'the provider sets no cookies at ours')
  for (const name of serviceHeaders) t.ok(heard.headers.has(name), name)
}

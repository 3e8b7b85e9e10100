import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { contract, type Route } from '#api/contract/contract.ts'
import { createRouter } from '#api/routes/index.ts'
import { providerNames } from '#shared/core/provider-registry.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import { buildOrg } from '#test/support/admin.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { checkAnswer, errorMessage } from '#test/support/contract.ts'
import {
  createFuzzClient,
  fuzzRequests,
  type FuzzAnswer,
  type FuzzRequest,
} from '#test/support/fuzz-requests.ts'
import { processEnvironment, startProcess } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { openOperations, troubledJobs } from '#test/support/observe-jobs.ts'

/** `FUZZ_SEED` tries other requests, `FUZZ_RUNS` more of them for each route. */
const seed = Number(process.env.FUZZ_SEED ?? 20_261_120)
const runs = Number(process.env.FUZZ_RUNS ?? 160)
/** Longer is a hang. On a quiet machine each takes less than 2 s (`scripts/prove.ts` measures it). */
const answerWithinMs = 30_000
/** Routes under fire at once: two cores are shared by the service, its worker, both stores and us. */
const atOnce = 4

t.setTimeout(0)
const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
/** A provider that knows no model and no key: a request that gets as far is over, with its 401 or 502. */
const provider = createServer((request, response) => {
  request.resume()
  const lists = request.url?.endsWith('/models')
  response.writeHead(lists ? 200 : 401, { 'content-type': 'application/json' })
  response.end(lists ? '{"data":[]}' : '{"error":{"message":"unknown key"}}')
})
await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
t.teardown(() => provider.close())
const { port } = provider.address() as AddressInfo
const strangers = Object.fromEntries(
  providerNames.map(name => [`${name.toUpperCase()}_BASE_URL`, `http://127.0.0.1:${port}/v1`]),
)
const [web, worker] = await Promise.all([
  startProcess(
    t,
    'node api/index.ts',
    processEnvironment(config, { LOG_LEVEL: 'warn', ...strangers }),
  ),
  startProcess(t, 'node workers/index.ts', processEnvironment(config, { LOG_LEVEL: 'warn' })),
])
const client = createFuzzClient(web.base, answerWithinMs)
t.teardown(client.close)

const served = new Set(
  createRouter(backend).stack.flatMap(({ methods, path }) =>
    methods.map(one => `${one} ${String(path)}`),
  ),
)
const endpoints = Object.values(contractDocument.endpoints).filter(({ method, path }) =>
  served.has(`${method} ${path}`),
)

/** What no answer may hold: stacks, paths of this machine, addresses and secrets of the stores. */
const leaks = new RegExp(
  [
    String.raw`\n\s+at `,
    String.raw`node_modules|node:internal|file:\/\/|\.ts:\d`,
    String.raw`(?:postgres(?:ql)?|mongodb):\/\/|pgboss|ECONNREFUSED`,
    config.keyPepper,
    config.masterKeys[0]!.key.toString('hex'),
  ].join('|'),
)

const residentMiB = (): number => {
  const statm = `/proc/${web.pid}/statm`
  return existsSync(statm) ? (Number(readFileSync(statm, 'utf8').split(' ')[1]) * 4) / 1024 : 0
}

let sent = 0
let slowest = 0
const statuses: Record<number, number> = {}

function check(
  endpoint: Endpoint,
  asked: FuzzRequest,
  { status, headers, text, ms }: FuzzAnswer,
): void {
  sent++
  slowest = Math.max(slowest, ms)
  statuses[status] = (statuses[status] ?? 0) + 1
  const expected = status === 502 && endpoint.errors.includes(502)
  if (status < 200 || (status >= 500 && !expected)) throw new Error(`status ${status}: ${text}`)
  if (leaks.test(text)) throw new Error(`the answer leaks: ${text.slice(0, 500)}`)
  for (const body of bodiesIn(headers['content-type'] ?? '', text)) {
    if (status >= 400 && errorMessage(body) === undefined) {
      throw new Error(`${status} without {error}: ${text}`)
    }
    // With what may be a provider's key the list is that of the provider.
    if (endpoint.operation !== 'models')
      try {
        checkAnswer(endpoint.method, asked.target, status, body)
      } catch (error) {
        throw new Error(`${status} ${text.slice(0, 500)}`, { cause: error })
      }
  }
  const fault =
    asked.isDeterministic && endpoint.body && !endpoint.body.lines
      ? bodyFault(endpoint, asked)
      : null
  // Of a path or credential that does not fit the body is not looked at.
  if (fault && ![400, 403, 404, 405].includes(status)) throw new Error(`${status}, but ${fault}`)
}

/** An answer is one JSON value, or one on each line. */
function bodiesIn(type: string, text: string): unknown[] {
  const parts = type.includes('ndjson') ? text.split('\n').filter(line => line !== '') : [text]
  return parts.map(part => JSON.parse(part) as unknown)
}

/** What is wrong with a body as the contract sees it, or null. */
function bodyFault({ method, path }: Endpoint, { body }: FuzzRequest): string | null {
  const { body: shape } = contract[`${method} ${path}` as Route] as {
    body?: { check(value: unknown): unknown }
  }
  try {
    const text = Buffer.from(body ?? '').toString('utf8')
    shape!.check(text === '' ? {} : sanitizeJson(JSON.parse(text)))
    return null
  } catch (error) {
    return (error as Error).message
  }
}

async function fire(endpoint: Endpoint, half: number): Promise<void> {
  const { method, path } = endpoint
  const byAdmin = !endpoint.auth.includes('memory-key')
  const team = byAdmin ? await buildOrg(backend, web.base) : null
  let key = team ? team.key : await buildKey(backend)
  const numRuns = Math.ceil((endpoint.body ? runs : runs / 8) / 2)
  await fc.assert(
    fc.asyncProperty(fuzzRequests(endpoint), async asked => {
      const headers = { authorization: `Bearer ${key}`, ...asked.headers }
      // Half of the time an organization that is there: what is behind it is tried too.
      const target =
        team && asked.target.length % 2 === 0
          ? asked.target.replace(/^\/v1\/orgs\/[^/?]+/, team.path)
          : asked.target
      const answer = await client.send(method, { ...asked, target, headers })
      // A key that was rotated has a successor, or nothing after it would get past the door.
      if (path.endsWith('/rotate') && answer.status === 201) key = JSON.parse(answer.text).key
      check(endpoint, { ...asked, target }, answer)
    }),
    { seed: seed + half, numRuns },
  )
}

/** Every route once, a few at a time. @returns what went wrong, by route. */
async function fireAll(half: number): Promise<Map<string, string>> {
  const waiting = [...endpoints]
  const faults = new Map<string, string>()
  const lane = async (): Promise<void> => {
    for (let endpoint = waiting.shift(); endpoint; endpoint = waiting.shift()) {
      const { method, path } = endpoint
      await fire(endpoint, half).catch((error: Error) =>
        faults.set(`${method} ${path}`, `${error.message}\n${String(error.cause)}`),
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return faults
}

t.test(
  `no request breaks a route: seed ${seed}, ${runs} of them where there is a body`,
  async t => {
    const begun = performance.now()
    for (const half of [0, 1]) {
      const before = residentMiB()
      const faults = await fireAll(half)
      for (const { method, path } of endpoints) {
        const route = `${method} ${path}`
        t.equal(faults.get(route), undefined, route)
      }
      const grown = residentMiB() - before
      t.comment(`resident memory: ${before.toFixed(0)} MiB and ${grown.toFixed(0)} MiB more`)
      // The first half loads code, tables and caches; what the second adds would go on growing. Some of it
      // is garbage not yet collected: bodies of up to 20 MiB that were kept would be far more.
      if (half === 1) t.ok(grown < 150, `resident memory grew by ${grown.toFixed(0)} MiB`)
    }
    const seconds = (performance.now() - begun) / 1_000
    t.comment(`${sent} requests in ${seconds.toFixed(1)} s, slowest ${slowest.toFixed(0)} ms`)
    t.comment(`answers by status: ${JSON.stringify(statuses)}`)
    t.ok((statuses[200] ?? 0) > 100 && (statuses[202] ?? 0) > 10, 'some of it was good')
  },
)

t.test('what was accepted can be stored, all of it, at the first try', async t => {
  const unsettled = () => openOperations(backend)
  await waitUntil('every operation is settled', async () => (await unsettled()).length === 0).catch(
    async (error: Error) => t.same(await unsettled(), [], error.message),
  )
  t.same(await troubledJobs(backend), [])
  // A machine that is busy with this may have MongoDB answer late.
  const lines = (web.output() + worker.output()).split('\n')
  const warnings = lines.filter(line => line !== '' && !line.includes('"dependency":"mongodb"'))
  t.same(warnings, [], 'nothing to warn about')
})

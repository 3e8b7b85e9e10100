import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { tools } from '#api/mcp/tools.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import { buildRequest, mcpCalls, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import { createTenants } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import { startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { grow, type Grown } from '#test/support/samples/grown-bodies.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startWeb } from '#test/support/start/processes.ts'
import { createTestService, furnishTenant, inputOf } from '#test/support/start/tenants.ts'

/**
 * What one call costs a web process at the size limit, for every route of the contract and every tool of MCP: CPU of all its
 * threads until it has nothing left to do, and CPU of the longest turn of its event loop. The smallest of some tries is
 * judged, since a collector may work beside one. The bounds are three times what is wanted (500 ms a call of a key that
 * only reads, 100 ms a turn), for a busy machine; the figures are printed.
 *
 * The long run looks at what is asked most. `ROUTE=` looks at all, `ROUTE=search` at the operations and tools whose name
 * has that, `ROUTE=:read` at those that a key that only reads may ask. Fields that hold no words grow of one kind of text
 * each, in turn, and so do objects within a body, since all take one way; with `KINDS=all` every one grows of every kind.
 */

t.setTimeout(0)

const wanted = { turn: 100, call: 500 }
const margin = 3
const triesMax = 3
/** The share of the size limit that is filled: some texts take more bytes in JSON. */
const filled = 0.9
/** Lines are read one by one: a long one, and not the 64 MiB of many. */
const linesBytes = 2 * 1024 * 1024

const report = new URL('../../support/checks/report-event-loop.ts', import.meta.url).href
const provider = new ModelProvider()
const addresses = { ...(await provider.listen()), WEBHOOK_LOOPBACK: 'on' }
t.teardown(() => provider.close())
const backend = await createTestBackend(t, { env: addresses })
await startJobWorkers(backend)
const web = await startWeb(t, backend.config, {
  ...addresses,
  LOG_LEVEL: 'silent',
  NODE_OPTIONS: `--import=${report}`,
})
const service = await createTestService(t, backend, { base: web.base, origin: provider.origin })
const counts = { accounts: 1, usersPerAccount: 1, membersPerOrg: 1 }
const tenants = await createTenants(service, 'costs', counts)
for (const tenant of tenants) await furnishTenant(service, tenant)
const user = tenants.find(({ kind }) => kind === 'user')!
await insertMemories(
  backend,
  user.key,
  Array.from({ length: 300 }, (_, n) => ({ text: `The ${n}th violin is in the attic.` })),
)

/** Milliseconds of CPU of the process: fields 14 and 15 of its line, in hundredths of a second. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${web.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Until it does nothing, or for two seconds. */
async function whenIdle(): Promise<number> {
  let before = -1
  for (let looks = 0; looks < 40 && cpuMs() > before; looks++) {
    before = cpuMs()
    await delay(15)
  }
  return cpuMs()
}

type Cost = { turn: number; call: number; status: number; bytes: number }
type Call = RequestOptions & { key: string; path: string }

async function measure(call: Call, body: string | undefined, isRead: boolean): Promise<Cost> {
  const cost: Cost = {
    turn: Infinity,
    call: Infinity,
    status: 0,
    bytes: Buffer.byteLength(body ?? ''),
  }
  const isDear = () => cost.turn > wanted.turn || (isRead && cost.call > wanted.call)
  for (let tries = 0; tries < triesMax && isDear(); tries++) {
    const seen = web.output().length
    const before = await whenIdle()
    const { key, path, ...options } = call
    const { status } = await service.send(key, path, {
      ...options,
      ...(body !== undefined && { body }),
    })
    cost.status = status
    cost.call = Math.min(cost.call, (await whenIdle()) - before)
    const holds = web
      .output()
      .slice(seen)
      .matchAll(/event-loop-hold (\d+)/g)
    cost.turn = Math.min(cost.turn, Math.max(0, ...Array.from(holds, ([, ms]) => Number(ms))))
  }
  return cost
}

/** A tenant for each try: what one call ends another may need. */
const inputFor = (tenant: Tenant, choice: number) =>
  inputOf(
    service,
    { word: tenant.canary, session: tenant.session, id: kind => tenant.any(kind, () => 0) },
    tenant.canary,
    () => choice,
  )

const endings = ({ method }: Endpoint): number => Number(method === 'DELETE')

const isReadOnly = ({ needs }: Endpoint): boolean => needs.every(right => right === 'read')

const measured = new Set<string>()

/** A row of a table in Markdown. */
const print = (cells: string[]): void => void process.stdout.write(`| ${cells.join(' | ')} |\n`)
print(['Call', 'Longest turn', 'CPU of a call', 'Answers'])
print(Array(4).fill('---') as string[])

async function judge(
  name: string,
  isRead: boolean,
  call: Call,
  bodies: Iterable<readonly [how: string, body: string | undefined]>,
): Promise<void> {
  const worst = { turn: [0, ''], call: [0, ''] } as Record<'turn' | 'call', [number, string]>
  measured.add(name)
  const statuses: Record<number, number> = {}
  await t.test(name, async t => {
    for (const [how, body] of bodies) {
      const cost = await measure(call, body, isRead)
      statuses[cost.status] = (statuses[cost.status] ?? 0) + 1
      if (cost.status >= 500) t.fail(`${how}: ${cost.status}`)
      for (const kind of ['turn', 'call'] as const)
        if (cost[kind] > worst[kind][0]) worst[kind] = [cost[kind], `${how}, ${cost.bytes} bytes`]
    }
    t.ok(worst.turn[0] <= margin * wanted.turn, `a turn of ${worst.turn.join(' ms: ')}`)
    if (isRead) t.ok(worst.call[0] <= margin * wanted.call, worst.call.join(' ms: '))
  })
  const answers = Object.entries(statuses).map(([status, times]) => `${times} x ${status}`)
  const dearest = [worst.turn, worst.call].map(([ms, how]) => `${ms} ms: ${how}`)
  print([name, ...dearest, answers.join(', ')])
}

const askedMost = new Set(['search', 'dateSearch', 'MCP search', 'MCP date_search'])
const isAsked = (name: string, endpoint: Endpoint): boolean => {
  const { ROUTE: part } = process.env
  if (part === ':read') return isReadOnly(endpoint) && endpoint.auth.includes('memory-key')
  return part === undefined ? askedMost.has(name) : name.includes(part)
}

/** Values of one thing each are grown of. */
function* bodiesOf(endpoint: Endpoint, sample: unknown): Generator<[string, string | undefined]> {
  const { body } = endpoint
  if (!body) {
    yield ['no body', undefined]
    return
  }
  const size = filled * Math.min(body.bytesMax, body.lines ? linesBytes : Infinity)
  for (const [how, value] of grow(body.schema, sample, size)) yield [how, JSON.stringify(value)]
}

const asked = routes.filter(one => one.operation !== 'mcp' && isAsked(one.operation, one))
// What ends something comes last: others need it.
for (const endpoint of asked.sort((a, b) => endings(a) - endings(b))) {
  const kinds = sendersOf(endpoint)
  const tenant = tenants.find(({ kind }) => kind === kinds[0])!
  const isRead = isReadOnly(endpoint) && endpoint.auth.includes('memory-key')
  const { path, options } = buildRequest(endpoint, inputFor(tenant, 0.5))
  const { body: sample, ...others } = options
  const key = isRead && tenant.kind === 'user' ? `${tenant.key}:read` : tenant.key
  const call = { key, path, ...others, method: endpoint.method } as Call
  const parsed = typeof sample === 'string' && endpoint.body?.lines ? JSON.parse(sample) : sample
  await judge(endpoint.operation, isRead, call, bodiesOf(endpoint, parsed ?? {}))
}

const mcpSize = filled * 2 * 1024 * 1024

function* argumentsOf(name: string, sample: object): Generator<[string, string]> {
  const tool = tools.find(tool => tool.name === name)!
  const asCall = (args: unknown): string =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: args },
    })
  const grown: Grown[] = [...grow(tool.inputSchema, sample, mcpSize)]
  for (const [how, value] of grown) yield [how, asCall(value)]
  const asText: Grown[] = [...grow(tool.inputSchema, sample, mcpSize / 2)]
  for (const [how, value] of asText) yield [`${how}, as JSON text`, asCall(JSON.stringify(value))]
}

for (const [name, sample] of mcpCalls(inputFor(user, 0.5))) {
  const { endpoint } = tools.find(tool => tool.name === name)!
  if (!isAsked(`MCP ${name}`, endpoint)) continue
  const isRead = isReadOnly(endpoint)
  const headers = { accept: 'application/json, text/event-stream' }
  const key = isRead ? `${user.key}:read` : user.key
  const call = { key, path: '/mcp', method: 'POST', headers }
  await judge(`MCP ${name}`, isRead, call, argumentsOf(name, sample))
}

t.test('every route and tool was measured', async t => {
  const all: [name: string, endpoint: Endpoint][] = [
    ...Object.entries(contractDocument.endpoints),
    ...tools.map(({ name, endpoint }): [string, Endpoint] => [`MCP ${name}`, endpoint]),
  ]
  const asked = all.filter(([name, endpoint]) => isAsked(name, endpoint)).map(([name]) => name)
  t.same([...measured].sort(), asked.sort())
})

import t from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import { buildRequest, planOf, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import type { RequestInput } from '#scripts/lab/prove/requests/request-plan.ts'
import { createTenants } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { openOperations } from '#test/support/checks/observe-jobs.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { createTestService } from '#test/support/start/tenants.ts'
import { unbrokenTexts } from '#test/support/samples/unbroken-texts.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/* No body that a route accepts holds the event loop of a process, in any script: its turns are measured in CPU. */

t.setTimeout(0)

/** CPU of one turn of the event loop, in milliseconds. */
const turnMaxMs = 100
/** To be mended: beside some 30 texts of 64 Ki characters one query of 32,000 took a turn of 201 ms. */
const dateSearchTurnMaxMs = 300
/** The collector or the compiler may fall into any turn: what is over the bound each time is a fault. */
const triesMax = 6
/** Larger bodies have more texts, and heavy-texts.long.test.ts. */
const bytesMax = 2 * 1024 * 1024
/** The longest of a text that may have any length. */
const longTextMax = 64 * 1024

const outside = {
  WEBHOOK_LOOPBACK: 'on',
  LOG_LEVEL: 'warn',
  NODE_OPTIONS: `--import=${new URL('../support/checks/report-event-loop.ts', import.meta.url).href}`,
}
const provider = new ModelProvider()
Object.assign(outside, await provider.listen())
t.teardown(() => provider.close())
const config = await createTestConfig(t, outside)
const backend = await createTestBackend(t, { config })
const [web, worker] = await Promise.all([
  startWeb(t, config, outside),
  startWorker(t, config, outside),
])
const service = await createTestService(t, backend, { base: web.base, origin: provider.origin })
const tenants = await createTenants(service, 'turns', {
  accounts: 1,
  usersPerAccount: 1,
  membersPerOrg: 1,
})
const texts = Object.values(unbrokenTexts(longTextMax))

/** Choices differ from request to request, and are the same in each run. */
const random = seededRandom(1)
const inputOf = (tenant: Tenant): RequestInput => ({
  word: tenant.canary,
  foreignWord: tenant.canary,
  foreignSession: tenant.session,
  id: (kind, choice = 'any') => tenant[choice](kind, random),
  destination: () => tenant.any('destination', random),
  random,
  origin: provider.origin,
})

type Schema = Record<string, unknown>
const resolved = (schema: Schema): Schema => {
  const { $ref } = schema
  if (typeof $ref !== 'string') return schema
  const name = $ref.split('/').at(-1)!
  return resolved((contractDocument.$defs as Record<string, Schema>)[name]!)
}

/** A valid value with the longest texts and lists that its schema accepts. */
class Enlarged {
  /** Number of the next text, and of its script. */
  texts: number
  #bytesLeft = bytesMax * 0.9

  constructor(firstScript: number) {
    this.texts = firstScript
  }

  of(value: unknown, given: Schema): unknown {
    const schema = resolved(given)
    const ways = (schema.anyOf ?? []) as Schema[]
    if (ways.length > 0) {
      const type = Array.isArray(value) ? 'array' : typeof value
      const names = type === 'object' ? Object.keys(value ?? {}) : []
      const way = ways
        .map(resolved)
        .find(
          one =>
            one.type === type && names.every(name => Object.hasOwn(one.properties ?? {}, name)),
        )
      return way ? this.of(value, way) : value
    }
    if (typeof value === 'string') return this.#text(value, schema)
    if (Array.isArray(value)) return this.#list(value, schema)
    if (typeof value !== 'object' || value === null) return value
    const properties = (schema.properties ?? {}) as Record<string, Schema>
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.of(part, properties[name] ?? {})]),
    )
  }

  /** Names, ids and the like have a short bound, a format or a list. */
  #text(value: string, { enum: names, format, maxLength = longTextMax }: Schema): string {
    if (names || format || Number(maxLength) < 1_000 || !value.includes(' ')) return value
    const text = texts[this.texts++ % texts.length]!.slice(0, Number(maxLength)).toWellFormed()
    this.#bytesLeft -= Buffer.byteLength(text)
    return text
  }

  #list([first]: unknown[], { items = {}, maxItems = Infinity }: Schema): unknown[] {
    if (first === undefined) return []
    const list: unknown[] = []
    const before = this.texts
    do list.push(this.of(first, items as Schema))
    while (this.texts > before && list.length < Number(maxItems) && this.#bytesLeft > 200_000)
    return list
  }
}

/** The longest turn that a process has printed since. */
const longestTurn = (output: string): number =>
  Math.max(0, ...[...output.matchAll(/event-loop-hold (\d+)/g)].map(([, ms]) => Number(ms)))

function enlarge(endpoint: Endpoint, options: RequestOptions, script: number) {
  const enlarged = new Enlarged(script)
  const schema = endpoint.body!.schema as Schema
  const isLines = endpoint.body!.lines
  const body = isLines ? JSON.parse(options.body as string) : options.body
  const large = enlarged.of(body, schema)
  return {
    body: isLines ? JSON.stringify(large) : large,
    texts: enlarged.texts - script,
  }
}

for (const endpoint of routes) {
  const { operation, method, path: route, body } = endpoint
  // Forms are streamed; tools of MCP are requests to these routes; the last two end the keys of the others.
  if (!body || ['mcp', 'transcribe', 'rotateKey', 'eraseAccount'].includes(operation)) continue
  t.test(`${method} ${route}`, async t => {
    const boundMs = operation === 'dateSearch' ? dateSearchTurnMaxMs : turnMaxMs
    const tenant = tenants.find(({ kind }) => kind === sendersOf(endpoint)[0])!
    const send = async (script: number) => {
      const { path, options } = buildRequest(endpoint, inputOf(tenant))
      // Many at once, and with a question, where the contract takes them.
      if (operation === 'seedMemories') options.body = { items: [options.body] }
      if (operation === 'dateSearch')
        options.body = { ...(options.body as object), query: 'a question' }
      const large = enlarge(endpoint, options, script)
      const [atWeb, atWorker] = [web.output().length, worker.output().length]
      const answer = await service.send(tenant.key, path, { ...options, body: large.body })
      if (answer.status < 300) tenant.addNamed(planOf(endpoint), answer.text)
      await waitUntil('it is done', async () => (await openOperations(backend)).length === 0)
      const longest = Math.max(
        longestTurn(web.output().slice(atWeb)),
        longestTurn(worker.output().slice(atWorker)),
      )
      return { ...answer, longest, texts: large.texts }
    }
    const { texts: count } = await send(0)
    t.comment(`${count} texts`)
    // A list has texts in all scripts; a single one is sent in each.
    const scripts = count === 0 || count >= texts.length ? [0] : texts.keys()
    for (const script of scripts) {
      let longest = Infinity
      let status = 0
      for (let tries = 0; tries < triesMax && longest > boundMs; tries++) {
        const answer = await send(script)
        longest = Math.min(longest, answer.longest)
        status = answer.status
      }
      t.ok(longest <= boundMs, `script ${script}: ${status}, ${longest} ms of CPU`)
    }
  })
}

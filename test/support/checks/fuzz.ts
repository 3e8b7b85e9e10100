import { contract, type Route } from '#api/contract/contract.ts'
import type { Endpoint } from '#api/contract/document.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import { malformedRequest } from '#scripts/lab/prove/malformed/malformed-request.ts'
import { modelRequests } from '#scripts/lab/prove/requests/model-requests.ts'
import { planOf, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import { pickOne } from '#scripts/lab/prove/section.ts'
import { createTenants } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import type { Config } from '#shared/core/config.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import { errorMessage } from '#test/support/checks/contract.ts'
import { checkText, type ServiceAnswer, type TestService } from '#test/support/start/tenants.ts'

/** Sends each route `rounds` malformed requests of its senders. */
export class Fuzz {
  readonly statuses: Record<number, number> = {}
  /** What went wrong first, by route. */
  readonly faults = new Map<string, string>()
  readonly #service: TestService
  readonly #tenants: readonly Tenant[]
  readonly #leaks: RegExp

  private constructor(service: TestService, tenants: readonly Tenant[], config: Config) {
    this.#service = service
    this.#tenants = tenants
    this.#leaks = leaksOf(config)
  }

  static async create(service: TestService, config: Config): Promise<Fuzz> {
    const counts = { accounts: 1, usersPerAccount: 1, membersPerOrg: 1 }
    return new Fuzz(service, await createTenants(service, 'fuzz', counts), config)
  }

  /** The choices of a request are those of its number: they do not hang on the answers to others. */
  async run(seed: number, rounds: number): Promise<void> {
    const numbers = Array.from({ length: rounds * routes.length }, (_, number) => number).values()
    await Promise.all(
      [1, 2, 3, 4].map(async () => {
        for (const number of numbers) {
          const endpoint = routes[number % routes.length]!
          await this.#fire(endpoint, seededRandom(seed + number)).catch((error: Error) => {
            const route = `${endpoint.method} ${endpoint.path}`
            if (!this.faults.has(route))
              this.faults.set(route, `request ${number}: ${error.message}`)
          })
        }
      }),
    )
  }

  async #fire(endpoint: Endpoint, random: () => number): Promise<void> {
    const plan = planOf(endpoint)
    const kind = pickOne(sendersOf(endpoint), random)
    const tenant = this.#tenants.find(one => one.kind === kind)!
    const { origin } = this.#service
    const { path, options, isPlain } = malformedRequest(endpoint, plan, tenant, { random, origin })
    const key = plan.withOwnKey ? await this.#mintKey() : tenant.key
    const answer = await this.#service.send(key, path, options)
    const { status, text } = answer
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
    const what = `${path} ${JSON.stringify(options).slice(0, 500)} was answered with ${status} ${text.slice(0, 500)}`
    if (status < 200 || status >= 500) throw new Error(what)
    if (this.#leaks.test(text)) throw new Error(`${what}, which leaks`)
    checkForm(endpoint, path, answer, what)
    if (status < 300) tenant.addNamed(plan, text)
    const fault = isPlain && hasJson(endpoint) ? bodyFault(endpoint, options) : null
    // The body is not looked at where the path or the credential does not fit.
    if (fault && ![400, 403, 404, 405].includes(status)) throw new Error(`${what}, but ${fault}`)
  }

  /** A key that its request ends. */
  async #mintKey(): Promise<string> {
    const owner = this.#tenants.find(({ kind }) => kind === 'owner')!
    const { text } = await this.#service.send(owner.key, '/v1/keys', { body: {} })
    return (JSON.parse(text) as { key: string }).key
  }
}

/** Only some lines and forms are faulty, and what is passed on need not be as the contract says. */
const hasJson = (endpoint: Endpoint): boolean =>
  endpoint.body !== undefined && !planOf(endpoint).type && !isPassedOn(endpoint)

const isPassedOn = ({ operation }: Endpoint): boolean => operation in modelRequests

function checkForm(endpoint: Endpoint, path: string, answer: ServiceAnswer, what: string): void {
  const { status, text } = answer
  if (status >= 400 && errorMessage(JSON.parse(text)) === undefined)
    throw new Error(`${what} without {error}`)
  // What is passed on is answered by the stand-in; tools of MCP are no part of the contract.
  if (isPassedOn(endpoint) || endpoint.operation === 'mcp') return
  try {
    checkText(endpoint.method, path, answer)
  } catch (error) {
    throw new Error(`${what}, which is not the contract's: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** What no answer may hold: stacks, paths of this machine, addresses and secrets of the stores. */
const leaksOf = (config: Config): RegExp =>
  new RegExp(
    [
      String.raw`\n\s+at `,
      String.raw`node_modules|node:internal|file:\/\/|\.ts:\d`,
      String.raw`(?:postgres(?:ql)?|mongodb):\/\/|pgboss|ECONNREFUSED`,
      config.keyPepper,
      config.masterKeys[0]!.key.toString('hex'),
    ].join('|'),
  )

/** What is wrong with a body as the contract sees it, or null. */
function bodyFault({ method, path }: Endpoint, { body }: RequestOptions): string | null {
  const { body: shape } = (contract[`${method} ${path}` as Route] ?? {}) as {
    body?: { check(value: unknown): unknown }
  }
  if (!shape) return null
  try {
    // A byte order mark is left out by the decoder.
    const text = (typeof body === 'string' ? body : JSON.stringify(body ?? {})).replace(
      /^\uFEFF/,
      '',
    )
    shape.check(text === '' ? {} : sanitizeJson(JSON.parse(text)))
    return null
  } catch (error) {
    return (error as Error).message
  }
}

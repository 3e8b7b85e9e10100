import type { IncomingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { Agent } from 'undici'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import type { RequestInput } from '#scripts/lab/prove/requests/request-plan.ts'
import { buildRequest, planOf, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import type { TenantService } from '#scripts/lab/prove/tenants/create-tenants.ts'
import { partOfKey, type Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import type { Backend } from '#shared/backend.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { checkAnswer } from '#test/support/checks/contract.ts'

export type ServiceAnswer = { status: number; headers: IncomingHttpHeaders; text: string }

/** A running API as the place where the tenants of the proofs live. */
export interface TestService extends TenantService {
  send(key: string, path: string, options?: RequestOptions): Promise<ServiceAnswer>
}

/** @param origin of the stand-in for everything outside */
export async function createTestService(
  t: Test,
  backend: Backend,
  { base, origin }: { base: string; origin: string },
): Promise<TestService> {
  const dispatcher = new Agent()
  t.teardown(() => dispatcher.destroy())
  return {
    origin,
    adminSecret: (await buildAdmin(backend, operatorEmail(backend.config))).key,
    async createOwner(account) {
      const { memoryKey, key } = await buildAdmin(backend, `${account}@example.com`)
      return { memoryKey, adminKey: key }
    },
    async send(key, path, options = {}) {
      const { body, type = 'application/json', headers } = options
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      const { method = body === undefined ? 'GET' : 'POST' } = options
      const response = await dispatcher.request({
        origin: base,
        // As it is: a URL would be normalized.
        path,
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': type }),
          ...headers,
        },
        ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
      })
      const { statusCode: status, headers: answered } = response
      return { status, headers: answered, text: await response.body.text() }
    },
  }
}

/** Where the ids of a request are from, and the words of its questions. */
export type Whose = { word: string; session: string; id: (kind: string) => string }

/** @param word of the tenant that sends the request */
export const inputOf = (
  { origin }: TestService,
  whose: Whose,
  word: string,
  random: () => number,
): RequestInput => ({
  word,
  foreignWord: whose.word,
  foreignSession: whose.session,
  id: whose.id,
  destination: () => partOfKey(whose.id('destination'), random),
  random,
  origin,
})

/** Gives a tenant one of all that a request makes or names. */
export async function furnishTenant(service: TestService, tenant: Tenant): Promise<void> {
  const { canary: word, session, key } = tenant
  // Each makes the table give another form of its requests.
  for (const random of [0.05, 0.25, 0.5, 0.9].map(number => () => number)) {
    for (const endpoint of routes) {
      const plan = planOf(endpoint)
      const makes = (plan.keeps && !plan.isRare) || endpoint.operation === 'chat'
      if (!makes || !sendersOf(endpoint).includes(tenant.kind)) continue
      const id = (kind: string) => tenant.any(kind, random)
      const input = inputOf(service, { word, session, id }, word, random)
      const { path, options } = buildRequest(endpoint, input)
      const { status, text } = await service.send(key, path, options)
      if (status < 300) tenant.addNamed(plan, text)
    }
  }
}

/** @throws Error where an answer is not as the contract says */
export function checkText(
  method: string,
  path: string,
  { status, headers, text }: ServiceAnswer,
): void {
  const type = String(headers['content-type'])
  const parts = type.includes('ndjson') ? text.split('\n').filter(line => line !== '') : [text]
  for (const part of parts) checkAnswer(method, path, status, JSON.parse(part))
}

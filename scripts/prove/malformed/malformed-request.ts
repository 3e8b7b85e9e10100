import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import type { RequestOptions } from '#scripts/prove/cluster.ts'
import {
  brokenBodies,
  hostileHeader,
  hostileJson,
  hostileParts,
  hostileValues,
} from '#scripts/prove/malformed/hostile-values.ts'
import { pickOne, type SectionContext } from '#scripts/prove/section.ts'
import { fixedParams, idChoiceOf } from '#scripts/prove/tenants/id-choice.ts'
import type { RequestInput, RequestPlan } from '#scripts/prove/tenants/request-plan.ts'
import type { Tenant } from '#scripts/prove/tenants/tenant.ts'

/** Share of ids of a path that the tenant really has: what is behind them is reached. */
const realIdShare = 0.7
const brokenShare = 0.15
const plainHeadersShare = 0.7
/** Share of bodies that are valid but for one value. */
const nearlyValidShare = 0.25

/** A request to an endpoint with at least one value that it does not ask for, mostly. */
export function malformedRequest(
  endpoint: Endpoint,
  plan: RequestPlan,
  tenant: Tenant,
  { provider, random }: SectionContext,
): { path: string; options: RequestOptions } {
  const input: RequestInput = {
    tenant,
    word: tenant.canary,
    foreignWord: tenant.canary,
    foreignSession: tenant.session,
    id: kind => tenant.any(kind, random),
    ownOrForeign: kind => tenant.own(kind, random),
    random,
    origin: provider.origin,
  }
  const body = endpoint.method === 'GET' ? undefined : bodyOf(endpoint, plan, input)
  return {
    path: pathOf(endpoint, tenant, random) + queryOf(endpoint, plan, input),
    options: {
      method: endpoint.method,
      ...(body !== undefined && { body }),
      ...(plan.type && { type: plan.type }),
      headers: headersOf(endpoint, plan, input),
    },
  }
}

const pathOf = (endpoint: Endpoint, tenant: Tenant, random: () => number): string =>
  endpoint.path.replaceAll(/(?<=\/):(\w+)/g, (_, name: string) =>
    random() < realIdShare
      ? (fixedParams[name] ?? tenant[idChoiceOf(endpoint, name)](name, random))
      : pickOne(hostileParts, random) || 'x',
  )

function queryOf({ query }: Endpoint, plan: RequestPlan, input: RequestInput): string {
  const { random } = input
  if (random() < 0.5) return ''
  const names = [...fieldNames(query?.$ref), 'x', '__proto__']
  const valid = random() < 0.5 ? new URLSearchParams(plan.query?.(input)).toString() : ''
  return `?${valid}&${pickOne(names, random)}=${pickOne(hostileParts, random)}`
}

function headersOf(
  { headers }: Endpoint,
  plan: RequestPlan,
  input: RequestInput,
): Record<string, string> {
  const { random } = input
  // What is queued here need not be waited for.
  const valid = { prefer: 'respond-async', ...plan.headers?.(input) }
  if (random() < plainHeadersShare) return valid
  const [name, value] = hostileHeader(fieldNames(headers?.$ref), random)
  return { ...valid, [name]: value }
}

function bodyOf({ body }: Endpoint, plan: RequestPlan, input: RequestInput): string {
  const { random } = input
  const kind = random()
  if (kind < brokenShare) return pickOne(brokenBodies, random)
  if (kind < brokenShare + nearlyValidShare) return nearlyValidBody(plan, input)
  const fields = fieldNames(body?.schema.$ref).filter(() => random() < 0.6)
  return `{${fields.map(name => `${JSON.stringify(name)}:${pickOne(hostileJson, random)}`).join(',')}}`
}

function nearlyValidBody(plan: RequestPlan, input: RequestInput): string {
  const { random } = input
  const body = plan.body?.(input) ?? {}
  if (typeof body !== 'string') return spoiledJson(body as Container, random)
  if (!body.startsWith('{')) return body.slice(0, Math.floor(random() * body.length))
  const lines = body.trimEnd().split('\n')
  const index = Math.floor(random() * lines.length)
  return lines.with(index, spoiledJson(JSON.parse(lines[index]!), random)).join('\n')
}

function spoiledJson(value: Container, random: () => number): string {
  const copy = structuredClone(value)
  spoil(copy, random)
  return JSON.stringify(copy)
}

type Container = Record<string, unknown>

/** Replaces one value, however deep, by a hostile one; what has no values gets one. */
function spoil(container: Container, random: () => number): void {
  const name = pickOne(Object.keys(container), random) ?? 'x'
  const value = container[name]
  if (isContainer(value) && random() < 0.7) spoil(value, random)
  else container[name] = pickOne(hostileValues, random)
}

const isContainer = (value: unknown): value is Container =>
  typeof value === 'object' && value !== null

const fieldNames = (reference: string | undefined): string[] =>
  Object.keys(contractDocument.$defs[reference?.split('/').at(-1) ?? '']?.properties ?? {})

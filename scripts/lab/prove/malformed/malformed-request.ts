import { gzipSync } from 'node:zlib'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import {
  brokenBodies,
  hostileHeader,
  hostileJson,
  hostileParts,
  hostileValues,
} from '#scripts/lab/prove/malformed/hostile-values.ts'
import { validValue } from '#scripts/lab/prove/malformed/valid-values.ts'
import { fillPath, paramOf } from '#scripts/lab/prove/requests/id-choice.ts'
import type { RequestInput, RequestPlan } from '#scripts/lab/prove/requests/request-plan.ts'
import { pickOne } from '#scripts/lab/prove/section.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'

/** Share of ids of a path that the tenant really has, so that the work behind them is reached. */
const realIdShare = 0.7
const plainHeadersShare = 0.7
const zippedShare = 0.1
/** Kinds of bodies, each with the share of all bodies that are of this kind or of one before it. */
const bodyKinds = { broken: 0.15, nearlyValid: 0.4, valid: 0.5, ofSchema: 0.6, nearlyOfSchema: 0.8 }

/** `isPlain`: only its path, query and body decide how it is answered. */
type MalformedRequest = { path: string; options: RequestOptions; isPlain: boolean }

/** A request to an endpoint with at least one value that it does not ask for, mostly. */
export function malformedRequest(
  endpoint: Endpoint,
  plan: RequestPlan,
  tenant: Tenant,
  { random, origin }: { random: () => number; origin: string },
): MalformedRequest {
  const input: RequestInput = {
    word: tenant.canary,
    foreignWord: tenant.canary,
    foreignSession: tenant.session,
    id: (kind, choice = 'any') => tenant[choice](kind, random),
    destination: () => tenant.any('destination', random),
    random,
    origin,
  }
  const body = endpoint.method === 'GET' ? undefined : bodyOf(endpoint, plan, input)
  const [headers, hostile] = headersOf(endpoint, plan, input)
  const [sent, encoding] = body === undefined ? [] : encoded(body, random)
  return {
    isPlain: !hostile && !encoding,
    path: pathOf(endpoint, tenant, random) + queryOf(endpoint, plan, input),
    options: {
      method: endpoint.method,
      ...(plan.type && { type: plan.type }),
      ...(sent !== undefined && { body: sent }),
      headers: { ...headers, ...encoding, ...hostile },
    },
  }
}

type Headers = Record<string, string>

/** Some bodies are compressed, and some only say so. */
function encoded(
  body: string,
  random: () => number,
): [body: string | Uint8Array, headers?: Headers] {
  if (random() >= zippedShare) return [body]
  return [random() < 0.5 ? gzipSync(body) : body, { 'content-encoding': 'gzip' }]
}

const pathOf = (endpoint: Endpoint, tenant: Tenant, random: () => number): string =>
  fillPath(endpoint, name =>
    random() < realIdShare
      ? paramOf(endpoint, name, (kind, choice) => tenant[choice](kind, random))
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
): [valid: Headers, hostile?: Headers] {
  const { random } = input
  // What is queued here need not be waited for.
  const valid = { prefer: 'respond-async', ...plan.headers?.(input) }
  if (random() < plainHeadersShare) return [valid]
  const [name, value] = hostileHeader(fieldNames(headers?.$ref), random)
  return [valid, { [name]: value }]
}

function bodyOf({ body }: Endpoint, plan: RequestPlan, input: RequestInput): string {
  const { random } = input
  const kind = random()
  if (kind < bodyKinds.broken) return pickOne(brokenBodies, random)
  if (kind < bodyKinds.nearlyValid) return nearlyValidBody(plan, input)
  if (kind < bodyKinds.valid) return textOf(plan.body?.(input) ?? {})
  const fields = fieldNames(body?.schema.$ref)
  if (body && kind < bodyKinds.nearlyOfSchema) {
    const line = (): string => {
      const value = validValue(body.schema, random)
      return kind < bodyKinds.ofSchema ? JSON.stringify(value) : spoiledJson(value, random)
    }
    return body.lines ? `${line()}\n${line()}\n` : line()
  }
  const hostile = fields
    .filter(() => random() < 0.6)
    .map(name => `${JSON.stringify(name)}:${pickOne(hostileJson, random)}`)
  // The same field twice, which no value can have.
  const twice = random() < 0.1 ? hostile.slice(0, 1) : []
  return `{${[...hostile, ...twice].join(',')}}`
}

const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))

function nearlyValidBody(plan: RequestPlan, input: RequestInput): string {
  const { random } = input
  const body = plan.body?.(input) ?? {}
  if (typeof body !== 'string') return spoiledJson(body, random)
  if (!body.startsWith('{')) return body.slice(0, Math.floor(random() * body.length))
  const lines = body.trimEnd().split('\n')
  const index = Math.floor(random() * lines.length)
  return lines.with(index, spoiledJson(JSON.parse(lines[index]!), random)).join('\n')
}

function spoiledJson(value: unknown, random: () => number): string {
  if (!isContainer(value)) return pickOne(hostileJson, random)
  const copy = structuredClone(value)
  spoil(copy, random)
  return JSON.stringify(copy)
}

type Container = Record<string, unknown>

/** Replaces one value, however deep, by a hostile one, or takes it away; what has no values gets one. */
function spoil(container: Container, random: () => number): void {
  const name = pickOne(Object.keys(container), random) ?? 'x'
  const value = container[name]
  if (isContainer(value) && random() < 0.7) spoil(value, random)
  else if (random() < 0.1) delete container[name]
  else container[name] = pickOne(hostileValues, random)
}

const isContainer = (value: unknown): value is Container =>
  typeof value === 'object' && value !== null

const fieldNames = (reference: string | undefined): string[] =>
  Object.keys(contractDocument.$defs[reference?.split('/').at(-1) ?? '']?.properties ?? {})

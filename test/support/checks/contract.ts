import { responseShape } from '#api/contract/contract.ts'
import { providerRoutes, routePattern } from '#api/proxy/provider-routes.ts'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Shape } from '#shared/core/shape.ts'

const routes = Object.values(contractDocument.endpoints)
  .map(endpoint => ({
    ...endpoint,
    pattern: new RegExp(
      `^${endpoint.path.replaceAll(/[.*+?^${}()|[\]]/g, String.raw`\$&`).replaceAll(/\/:[A-Za-z]+/g, '/[^/]+')}$`,
    ),
  }))
  // `/v1/memory/stats` before `/v1/memory/:key`.
  .toSorted((one, other) => one.path.split(':').length - other.path.split(':').length)

/** What passes to providers and has no table of its own. */
const forwarded = providerRoutes
  .filter(({ shape }) => !shape)
  .map(route => ({ path: route.path, pattern: routePattern(route) }))

/** Whether a path is a page, an asset or a provider's instead of an endpoint of the contract. */
export const isOutsideContract = (path: string): boolean =>
  /^\/(?:openapi\.json|docs|guides|llms\.txt|mcp|metrics|console|admin\/queues|\.well-known|register|scim)(?:\/|$)/.test(
    path,
  ) ||
  (!routes.some(known => known.path === path || known.pattern.test(path)) &&
    forwarded.some(row => row.path === path || row.pattern.test(path)))

/** The endpoint that a request is for. */
export const endpointOf = (method: string, pathname: string): Endpoint | undefined =>
  routes.find(known => known.method === method && known.pattern.test(pathname))

/**
 * Checks an answer of the service against the contract: an endpoint answers according to its table,
 * every other path `{error, hint?}`, or what a family's clients show.
 */
export function checkAnswer(method: string, path: string, status: number, body: unknown): void {
  const { pathname } = new URL(path, 'http://localhost')
  const route = endpointOf(method, pathname)
  if (route && status !== 404 && status !== 405) {
    responseShape(method, route.path, status).check(body)
  } else if (!isOutsideContract(pathname) && errorMessage(body) === undefined) {
    throw new Error(`${method} ${pathname} answered ${status} without {error}`)
  }
}

/** The refusal of a value, or undefined when the shape accepts it. */
export function refusalOf(shape: Shape<unknown>, value: unknown): Refusal | undefined {
  try {
    shape.check(structuredClone(value))
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

/** What an error says: `error`, or on paths of providers `error.message`; undefined for other bodies. */
export function errorMessage(body: unknown): string | undefined {
  const { error } = (body ?? {}) as { error?: string | { message?: unknown } | null }
  const message = typeof error === 'object' ? error?.message : error
  return typeof message === 'string' ? message : undefined
}

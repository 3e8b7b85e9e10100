import type { Context, Middleware } from 'koa'
import { contract, type Route } from '#api/contract/contract.ts'
import { fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { Refusal } from '#shared/core/errors.ts'
import { suggestName } from '#shared/core/suggest-name.ts'

/** Longest part of a parameter's name that a message repeats. */
const shownLengthMax = 64

/**
 * Refuses query parameters that an endpoint does not know: an ignored one could change what is done.
 *
 * @throws Refusal `invalid` with the nearest name, or the place where the parameter belongs.
 */
export function requireKnownParameters(
  ctx: Context,
  { query, body }: Pick<Endpoint, 'query' | 'body'>,
): void {
  const known = query ? fieldsOf(query) : { names: [], isClosed: true }
  if (!known.isClosed) return
  const unknown = Object.keys(ctx.query).find(name => !known.names.includes(name))
  if (unknown === undefined) return
  const inBody = body && !body.lines ? fieldsOf(body.schema).names : []
  throw new Refusal(
    'invalid',
    `unknown query parameter ${unknown.slice(0, shownLengthMax)}`,
    unknownParameterHint(unknown, known.names, inBody),
  )
}

/** The same for a route of the contract that is open to everyone. */
export const knownParameters =
  (route: Route): Middleware =>
  (ctx, next) => {
    requireKnownParameters(ctx, contract[route].endpoint)
    return next()
  }

function unknownParameterHint(unknown: string, known: string[], inBody: string[]): string {
  if (inBody.includes(unknown)) return `send ${unknown} in the body`
  const nearest = suggestName(unknown, known)
  if (nearest) return `did you mean ${nearest}?`
  const nearestInBody = suggestName(unknown, inBody)
  if (nearestInBody) return `did you mean ${nearestInBody}, in the body?`
  return known.length > 0
    ? `known parameters: ${known.join(', ')}`
    : 'this endpoint takes no query parameters'
}

import type { Router, RouterContext } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Authenticate, Identity } from '#api/edge/auth.ts'
import { bodyLimits, readJson } from '#api/edge/body.ts'
import {
  replayResponses,
  RequestIdempotency,
  toStoredRoute,
  unclaimed,
  type RequestClaim,
} from '#api/edge/request-idempotency.ts'
import { sendInputNotes, parseQuery } from '#api/edge/request.ts'
import { setAcceptedHeaders } from '#api/edge/operation-response.ts'
import { checkParameters } from '#api/edge/query-parameters.ts'
import { contract, type Route } from '#api/contract/contract.ts'
import { fieldsOf, type Endpoint } from '#api/contract/document.ts'
import type { Endpoints } from '#api/contract/generated/types.ts'
import { InputNotes } from '#shared/core/lenient-input.ts'
import type { Shape } from '#shared/core/shape.ts'

/**
 * When the Idempotency-Key is claimed: `before` the handler runs, `by-handler` (once it knows what the
 * request asks for), or not at all.
 */
type ClaimMode = 'before' | 'by-handler' | 'never'

type PartOf<Name extends Route, Part extends string> = Part extends keyof Endpoints[Name]
  ? Endpoints[Name][Part]
  : undefined

type EndpointOptions<Name extends Route, Id extends Identity, Mode extends ClaimMode> = {
  /** Its limits, fields and statuses stand in the page of `api/contract` after which the file of the route is named. */
  route: Name
  auth: Authenticate<Id>
  /** Whether the account may have this done; not checked again for work that an earlier attempt began. */
  admit?: (identity: Id) => void
  /** `before`, when missing. */
  claims?: Mode
  handle(request: Id & EndpointRequest<Name, Mode>, ctx: RouterContext): Promise<void>
}

/** The request as its handler gets it, with the identity that authentication found. */
type EndpointRequest<Name extends Route, Mode extends ClaimMode> = {
  /** Not checked: an id that cannot exist is missing. */
  params: { readonly [Param in keyof PartOf<Name, 'params'>]: string }
  query: PartOf<Name, 'query'>
  /** Undefined where a handler claims by itself: it reads the body as a stream. */
  body: Mode extends 'by-handler' ? undefined : PartOf<Name, 'body'>
  /** Ignored and clamped fields of query and body, for the headers of the answer. */
  notes: InputNotes
  /** When the request was taken, by `performance.now()`. */
  startedAt: number
} & (Mode extends 'by-handler' ? { idempotency: RequestIdempotency } : { claim: RequestClaim })

/**
 * Serves an endpoint of the contract. Every request goes the same way: authenticate (with rate limits,
 * the removal of expired memories and the checks of `auth`), check the query and its names, read and check the body,
 * claim the Idempotency-Key, `admit`, handle, store the response for the key. The first that refuses
 * ends it.
 */
export function endpoint<
  Name extends Route,
  Id extends Identity,
  Mode extends ClaimMode = 'before',
>(
  router: Router,
  backend: ApiBackend,
  { route, auth, admit, claims = 'before' as Mode, handle }: EndpointOptions<Name, Id, Mode>,
): void {
  const [method, path] = route.split(' ') as [string, string]
  const shapes: EndpointParts = contract[route]
  const serve = async (ctx: RouterContext): Promise<void> => {
    const startedAt = performance.now()
    const identity = await auth(ctx, backend)
    const idempotency = new RequestIdempotency(ctx, backend, {
      keyHash: identity.keyHash,
      route: toStoredRoute(route, ctx.params),
      takesKey,
    })
    const notes = new InputNotes()
    checkParameters(ctx, shapes.endpoint, notes)
    const query = shapes.query && parseQuery(ctx, shapes.query, notes)
    const body = claims === 'by-handler' ? undefined : await readBody(ctx, shapes, notes)
    sendInputNotes(ctx, notes)
    const input = { ...identity, params: ctx.params, query, body, notes, startedAt }
    try {
      const claim = claims === 'before' ? await idempotency.claim(body) : unclaimed()
      if (claim.isFirstAttempt) admit?.(identity)
      await handle({ ...input, claim, idempotency } as never, ctx)
      await idempotency.settle()
    } catch (error) {
      await idempotency.abandon(error)
      throw error
    }
  }
  const { headers } = shapes.endpoint
  const headerNames = headers ? fieldsOf(headers).names : []
  const heedsPreference = headerNames.includes('prefer')
  const takesKey = headerNames.includes('idempotency-key')
  const changesKeys = method !== 'GET' && keyPaths.test(path)
  router.register(path, [method], async ctx => {
    try {
      await replayResponses(ctx, () => serve(ctx))
    } finally {
      if (changesKeys) noteKeyChange(backend)
    }
    setAcceptedHeaders(ctx, heedsPreference)
  })
}

/** Below these, requests change keys, balances and provider keys. */
const keyPaths = /^\/v1\/(?:keys|account|orgs|operator)(?:\/|$)/

/** Drops cached keys: a request under these paths may have changed them. */
function noteKeyChange({ verifiedKeys, providerKeys }: ApiBackend): void {
  verifiedKeys.noteChange()
  providerKeys.noteChange()
}

type EndpointParts = { endpoint: Endpoint; query?: Shape<unknown>; body?: Shape<unknown> }

async function readBody(
  ctx: RouterContext,
  { endpoint, body }: EndpointParts,
  notes: InputNotes,
): Promise<unknown> {
  if (!body || !endpoint.body) return undefined
  const size = endpoint.body.bytesMax > bodyLimits.small ? 'large' : 'small'
  return body.check(await readJson(ctx, size), notes)
}

import type { Router, RouterContext } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { identifyByBody, type Authenticate, type Identity } from '#api/edge/auth.ts'
import { bodyLimits, readJson } from '#api/edge/body.ts'
import {
  replayResponses,
  RequestIdempotency,
  toStoredRoute,
  unclaimed,
  type RequestClaim,
} from '#api/edge/request-idempotency.ts'
import { requireUnchanged, takeUnsettable } from '#api/edge/sent-back.ts'
import { sendInputNotes, parseQuery } from '#api/edge/request.ts'
import { setAcceptedHeaders } from '#api/edge/operation-response.ts'
import { checkHeaders } from '#api/edge/request-headers.ts'
import { checkParameters } from '#api/edge/query-parameters.ts'
import { contract, type Route } from '#api/contract/contract.ts'
import { fieldsOf, type Endpoint } from '#api/contract/document.ts'
import type { Endpoints } from '#api/contract/generated/types.ts'
import { Refusal } from '#shared/core/errors.ts'
import { InputNotes } from '#shared/core/lenient-input.ts'
import { shape, type Shape } from '#shared/core/shape.ts'

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
} & (Name extends `${'PATCH' | 'PUT'} ${string}` ? Current<Name, Id> : Partial<Current<Name, Id>>)

type Current<Name extends Route, Id extends Identity> = {
  /** The resource as its own GET answers it, for read-only fields that are sent back; undefined: there is none. */
  current(
    request: Id & {
      params: { readonly [Param in keyof PartOf<Name, 'params'>]: string }
      /** As it was sent: it may not be valid. */
      body: unknown
    },
  ): Promise<object | undefined>
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
>(router: Router, backend: ApiBackend, options: EndpointOptions<Name, Id, Mode>): void {
  const { route, auth, admit, claims = 'before' as Mode, handle } = options
  const readCurrent = options.current as
    | ((request: object) => Promise<object | undefined>)
    | undefined
  const [method, path] = route.split(' ') as [string, string]
  const shapes: EndpointParts = contract[route]
  const serve = async (ctx: RouterContext): Promise<void> => {
    const startedAt = performance.now()
    const authenticated = await auth(ctx, backend)
    const notes = new InputNotes()
    checkHeaders(ctx, shapes.endpoint, notes)
    checkParameters(ctx, shapes.endpoint, notes)
    const query = shapes.query && parseQuery(ctx, shapes.query, shapes.endpoint.effect, notes)
    const current =
      readCurrent &&
      ((sent: unknown) => readCurrent({ ...authenticated, params: ctx.params, body: sent }))
    const { body, judgeRest } =
      claims === 'by-handler' && shapes.body ? noBody : await readBody(ctx, shapes, notes, current)
    const identity = await identifyByBody(authenticated, body, notes)
    const idempotency = new RequestIdempotency(ctx, backend, {
      keyHash: identity.keyHash,
      route: toStoredRoute(route, ctx.params),
      takesKey,
    })
    sendInputNotes(ctx, notes)
    const input = { ...identity, params: ctx.params, query, body, notes, startedAt }
    try {
      const claim = claims === 'before' ? await idempotency.claim(body) : unclaimed()
      if (claim.isFirstAttempt) {
        await judgeRest?.()
        admit?.(identity)
      }
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

/** Drops cached keys: a request may have changed them. */
export function noteKeyChange({ verifiedKeys, providerKeys }: ApiBackend): void {
  verifiedKeys.noteChange()
  providerKeys.noteChange()
}

type EndpointParts = { endpoint: Endpoint; query?: Shape<unknown>; body?: Shape<unknown> }

async function readBody(
  ctx: RouterContext,
  { endpoint, body }: EndpointParts,
  notes: InputNotes,
  current?: (sent: unknown) => Promise<object | undefined>,
): Promise<ReadBody> {
  if (!body || !endpoint.body) {
    if (endpoint.effect === 'changes') noFields.check((await readJson(ctx, 'small')) ?? {})
    return noBody
  }
  const size = endpoint.body.bytesMax > bodyLimits.small ? 'large' : 'small'
  const sent = await readJson(ctx, size)
  // As for the header: the vault of the key must not stand in for that of a user.
  if ((sent as { memory_user?: unknown } | undefined)?.memory_user === null)
    throw new Refusal('invalid', 'memory_user is null', 'Name the user, or leave the field out')
  if (!current) return { body: body.check(sent, notes) }
  const unsettable = takeUnsettable(sent, endpoint)
  const judgeUnsettable = (): Promise<void> =>
    requireUnchanged(unsettable, endpoint, () => current(sent))
  try {
    const checked = body.check(sent, notes)
    const judgeRest = async (): Promise<void> => {
      await judgeUnsettable()
      if (Object.keys(checked as object).length === 0) throw nothingToChange(endpoint)
    }
    return { body: checked, judgeRest }
  } catch (error) {
    // A misspelt field is named in place of the one that is missing.
    await judgeUnsettable()
    throw error
  }
}

type ReadBody = {
  body: unknown
  /** What is left to judge of a body, but where the request is sent again. */
  judgeRest?: () => Promise<void>
}

const noBody: ReadBody = { body: undefined }

/** What a call that changes something takes for its body where it has none. */
const noFields = shape(
  { type: 'object', properties: {}, additionalProperties: false },
  { name: 'the body', unknown: 'refused' },
)

const nothingToChange = ({ body }: Endpoint): Refusal =>
  new Refusal('invalid', 'Nothing to change', `Send ${fieldsOf(body!.schema).names.join(', ')}`)

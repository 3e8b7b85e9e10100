import type { Context } from 'koa'
import { authenticateProxyCaller, providerKeyFromRequest } from '#api/proxy/credentials.ts'
import { parsePassthroughBody, type ParsedBody } from '#api/proxy/pass-through-body.ts'
import {
  choosePassthroughModel,
  formatOf,
  passthroughTarget,
  rewriteUploadUrl,
} from '#api/proxy/pass-through-target.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import { createRequestTimer, type RequestTimer } from '#api/proxy/response-headers.ts'
import { clientAbortController, relay } from '#api/proxy/relay.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { idempotencyKeyNotTaken } from '#shared/core/refusals.ts'
import { mintId } from '#shared/core/ids.ts'
import { requireOwner, type Caller } from '#shared/access/caller.ts'
import { prefixedName, type ModelRef } from '#shared/models/resolve-model.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** A request to forward: its route, and the model of its path. */
export type Passthrough = { route: ProviderRoute; pathModel?: string | undefined }

/** Forwards a request to a provider without memory, and relays the answer byte for byte. */
export async function proxyPassthrough(
  ctx: Context,
  backend: ApiBackend,
  passthrough: Passthrough,
): Promise<void> {
  const timer = createRequestTimer()
  try {
    const { caller } = await authenticateProxyCaller(ctx, backend)
    rejectIdempotencyKey(ctx)
    requireBalance(caller)
    await forwardPassthrough(ctx, backend, { ...passthrough, caller, timer })
  } finally {
    timer.setTimingHeaders(ctx)
  }
}

type Forwarding = Passthrough & { caller: Caller; timer: RequestTimer }

/** Forwards the request of a caller that may make it. */
export async function forwardPassthrough(
  ctx: Context,
  backend: ApiBackend,
  { route, pathModel, caller, timer }: Forwarding,
): Promise<void> {
  const format = formatOf(ctx, route)
  const parsedBody = await parsePassthroughBody(ctx, route, format)
  const { signal: clientSignal } = clientAbortController(ctx)
  let response: UpstreamResponse | undefined
  try {
    const choice = { format, pathModel, bodyModel: parsedBody.model }
    const model = await choosePassthroughModel(ctx, backend, caller, choice)
    if (route.lists) requireListOwner(ctx, backend, caller, model)
    const target = await passthroughTarget(ctx, backend, caller, { format, pathModel, model })
    response = await timer
      .timeProvider(
        backend.upstream.send({
          provider: model.provider,
          url: target.url,
          method: ctx.method as ProviderRoute['methods'][number],
          headers: { ...target.headers, ...bodyHeaders(parsedBody, sentName(model, pathModel)) },
          body: parsedBody.body(sentName(model, pathModel)),
          signal: clientSignal,
        }),
      )
      .then(answer => rewriteUploadUrl(ctx, answer))
      .catch((error: unknown) => {
        if (!clientSignal.aborted) throw error
        return undefined
      })
    if (ctx.method !== 'GET' && ctx.method !== 'DELETE') recordRequest(backend, caller, model)
  } finally {
    await parsedBody.discard()
  }
  if (!response) {
    ctx.respond = false
    ctx.status = 499
    return
  }
  timer.setTimingHeaders(ctx)
  if (route.counts) ctx.set('X-Memory-Counted', 'false')
  const { clientTimeoutMs } = backend.config
  await relay(ctx, response, { onBytes() {}, clientTimeoutMs, end: 'ended' })
}

/**
 * A list shows what the account of a provider key keeps. The request's own key says whose that is only at the
 * provider's own address: what answers where the operator says may take any key, or need none.
 *
 * @throws Refusal `forbidden`
 */
function requireListOwner(
  ctx: Context,
  { config }: ApiBackend,
  caller: Caller,
  { provider }: ModelRef,
): void {
  const { selfHosted, isAddressSet } = config.providers.get(provider)!
  if (selfHosted || isAddressSet || providerKeyFromRequest(ctx) === undefined) requireOwner(caller)
}

/** The body takes the provider's name for its model; a path that names one has it there. */
const sentName = ({ name }: ModelRef, pathModel: string | undefined): string | undefined =>
  pathModel === undefined ? name : undefined

function bodyHeaders(
  { byteLength, headers = {} }: ParsedBody,
  name: string | undefined,
): Record<string, string> {
  const length = byteLength?.(name)
  return { ...headers, ...(length !== undefined && { 'content-length': String(length) }) }
}

function recordRequest(backend: ApiBackend, caller: Caller, model: ModelRef): void {
  recordModelCall(backend, caller, {
    id: mintId(),
    kind: 'pass-through',
    model: prefixedName(model),
    session: null,
    inputTokens: 0,
    outputTokens: 0,
    recalledTokens: 0,
  })
}

/** Responses here, recordings and images, are too large to be stored for a replay. */
function rejectIdempotencyKey(ctx: Context): void {
  if (ctx.get('idempotency-key') === '') return
  throw idempotencyKeyNotTaken('here: these answers are not kept')
}

import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { readJsonBytes, requireEncoding, requireMediaType } from '#api/edge/body.ts'
import { streamBody } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { authenticateProxyCaller, resolveProviderKey } from '#api/proxy/credentials.ts'
import { parsePassthroughRequest } from '#api/proxy/dialects/pass-through-request.ts'
import { formBytesMax, readMultipartForm } from '#api/proxy/multipart-form.ts'
import { createRequestTimer, type RequestTimer } from '#api/proxy/response-headers.ts'
import { endRelayedResponse, clientAbortSignal, relay } from '#api/proxy/relay.ts'
import { buildProviderTarget } from '#api/proxy/provider-target.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { prefixedName, resolveModel } from '#shared/models/resolve-model.ts'
import type { Shape } from '#shared/core/shape.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

/** An endpoint that is forwarded to a provider without memory. */
export type PassthroughRoute = {
  /** Path at the provider, below that of its OpenAI-compatible API. */
  path: string
  /** What the contract requires of the body. */
  shape: Shape<unknown>
  /** Whether the body is a multipart form, which is streamed, or JSON. */
  isForm: boolean
}

/** A body whose model has been read. */
type ParsedBody = {
  model: string
  /** The bytes for the provider, with the model under the provider's name. */
  body(name: string): Buffer | Readable
  /** Their number; absent where it is unknown before they are sent. */
  byteLength?: (name: string) => number
  /** Reads and drops what has not been sent. */
  discard(): Promise<void>
}

/** Forwards a request to the provider of its model, and relays the answer byte for byte. */
export async function proxyPassthrough(
  ctx: Context,
  backend: ApiBackend,
  route: PassthroughRoute,
): Promise<void> {
  const timer = createRequestTimer()
  try {
    const caller = await authenticateProxyCaller(ctx, backend)
    rejectIdempotencyKey(ctx)
    requireBalance(caller)
    const parsedBody = route.isForm
      ? await parseFormBody(ctx, route)
      : await parseJsonBody(ctx, route)
    try {
      await forward(ctx, backend, { caller, parsedBody, path: route.path, timer })
    } finally {
      await parsedBody.discard()
    }
    endRelayedResponse(ctx)
  } finally {
    timer.setTimingHeaders(ctx)
  }
}

type ForwardOptions = { caller: Caller; parsedBody: ParsedBody; path: string; timer: RequestTimer }

async function forward(
  ctx: Context,
  backend: ApiBackend,
  { caller, parsedBody, path, timer }: ForwardOptions,
): Promise<void> {
  const model = await resolveModel(backend, parsedBody.model, 'openai', () =>
    openProviderKeys(backend, caller.account),
  )
  const key = await resolveProviderKey(ctx, backend, caller, model.provider)
  const { url, headers } = buildProviderTarget(ctx, backend.config, {
    model,
    format: 'openai',
    path,
    ...(key !== undefined && { key }),
  })
  const clientSignal = clientAbortSignal(ctx)
  const byteLength = parsedBody.byteLength?.(model.name)
  const pendingResponse = backend.upstream.post({
    provider: model.provider,
    url,
    headers: {
      ...headers,
      ...(byteLength !== undefined && { 'content-length': String(byteLength) }),
    },
    body: parsedBody.body(model.name),
    signal: clientSignal,
  })
  const response = await timer.timeProvider(pendingResponse).catch((error: unknown) => {
    if (!clientSignal.aborted) throw error
  })
  recordModelCall(backend, caller, {
    id: mintId(),
    kind: 'pass-through',
    model: prefixedName(model),
    session: null,
    inputTokens: 0,
    outputTokens: 0,
    recalledTokens: 0,
  })
  if (!response) {
    ctx.respond = false
    ctx.status = 499
    return
  }
  timer.setTimingHeaders(ctx)
  const { clientTimeoutMs } = backend.config
  await relay(ctx, response, { onBytes() {}, clientTimeoutMs })
}

/** Responses here, recordings and images, are too large to be stored for a replay. */
function rejectIdempotencyKey(ctx: Context): void {
  if (ctx.get('idempotency-key') === '') return
  throw new Refusal(
    'invalid',
    'Idempotency-Key is not taken here: these answers are not kept',
    'Leave it out; sent again, the provider is asked again',
  )
}

async function parseJsonBody(ctx: Context, { shape }: PassthroughRoute): Promise<ParsedBody> {
  const bytes = await readJsonBytes(ctx)
  const request = parsePassthroughRequest(bytes.length > 0 ? bytes : Buffer.from('{}'))
  shape.check(sanitizeJson({ model: request.model }))
  return { model: request.model ?? '', body: request.serialize, discard: async () => {} }
}

async function parseFormBody(ctx: Context, { shape }: PassthroughRoute): Promise<ParsedBody> {
  requireMediaType(ctx, ['multipart/form-data'], 'Send multipart/form-data with file and model')
  const encoding = requireEncoding(ctx, ['identity'], 'Send it plain')
  const declared = ctx.request.length
  if ((declared ?? 0) > formBytesMax) {
    throw new Refusal('too-large', 'The form is larger than 25 MiB')
  }
  allowSlowBody(ctx.req)
  const form = await readMultipartForm(streamBody(ctx, encoding), ctx.get('content-type'))
  shape.check(sanitizeJson({ model: form.model, file: '' }))
  const renamed = (name: string): string | undefined => (name === form.model ? undefined : name)
  const parsedBody: ParsedBody = {
    model: form.model,
    body: name => Readable.from(form.bytes(renamed(name)), { objectMode: false }),
    discard: form.discard,
  }
  if (declared === undefined) return parsedBody
  const byteLength = (name: string): number =>
    declared + (renamed(name) === undefined ? 0 : form.addedBytes(name))
  return { ...parsedBody, byteLength }
}

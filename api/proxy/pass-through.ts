import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admitBody, bodyShareOf, releaseBody } from '#api/edge/body-budget.ts'
import { streamBody } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { requireEncoding, requireMediaType } from '#api/edge/body.ts'
import { publicOrigin } from '#api/edge/request.ts'
import {
  authenticateProxyCaller,
  providerKeyFromRequest,
  resolveProviderKey,
} from '#api/proxy/credentials.ts'
import { dialects, passThrough } from '#api/proxy/dialects/index.ts'
import { readMultipartForm } from '#api/proxy/multipart-form.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import {
  buildProviderTarget,
  isOpenAiFormat,
  namedProvider,
  pickProvider,
  type ProviderTarget,
} from '#api/proxy/provider-target.ts'
import { ClientAnswer } from '#api/proxy/relay.ts'
import { limitBytes, uploadBytesMax } from '#api/proxy/streamed-body.ts'
import { readJsonOrStream } from '#api/proxy/streamed-json.ts'
import { requireOwner, type Caller } from '#shared/access/caller.ts'
import { containsKey } from '#shared/access/key.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { recordModelCall } from '#shared/billing/meter.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { providerOfKey, type ApiFormat } from '#shared/core/provider-registry.ts'
import { idempotencyKeyNotTaken } from '#shared/core/refusals.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import { prefixedName, resolveModel, type ModelRef } from '#shared/models/resolve-model.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** A request to forward: its route, and the model of its path, where `%2F` may stand for a slash. */
export type Passthrough = { route: ProviderRoute; pathModel?: string | undefined }

/** Forwards a request to a provider without memory, and relays the answer byte for byte. */
export async function proxyPassthrough(
  ctx: Context,
  backend: ApiBackend,
  passthrough: Passthrough,
): Promise<void> {
  const answer = new ClientAnswer(ctx)
  try {
    const { caller } = await authenticateProxyCaller(ctx, backend)
    // Answers here, recordings and images, are too large to be stored for a replay.
    if (ctx.headers['idempotency-key'])
      throw idempotencyKeyNotTaken('here: these answers are not kept')
    requireBalance(caller)
    await forwardPassthrough(ctx, backend, { ...passthrough, caller, answer })
  } finally {
    answer.writeHead()
  }
}

/** Forwards the request of a caller that may make it. */
export async function forwardPassthrough(
  ctx: Context,
  backend: ApiBackend,
  { route, pathModel, caller, answer }: Passthrough & { caller: Caller; answer: ClientAnswer },
): Promise<void> {
  const format = formatOf(ctx, route)
  const body = await readBody(ctx, route, format)
  const { signal } = answer
  let upstream: UpstreamResponse | undefined
  try {
    const model = await chooseModel(ctx, backend, caller, format, pathModel ?? body.model)
    if (route.lists) requireListOwner(ctx, backend, caller, model)
    const target = await targetOf(ctx, backend, caller, { format, pathModel, model })
    // A path that names a model has the provider's name for it there; else the body takes it.
    const name = pathModel === undefined ? model.name : undefined
    const length = body.byteLength?.(name)
    const lengthHeader = length === undefined ? {} : { 'content-length': String(length) }
    const sending = backend.upstream.send({
      provider: model.provider,
      url: target.url,
      method: ctx.method as ProviderRoute['methods'][number],
      headers: { ...target.headers, ...body.headers, ...lengthHeader },
      body: body.bytes(name),
      signal,
    })
    upstream = await answer.timeProvider(sending).catch((error: unknown) => {
      if (!signal.aborted) throw error
      return undefined
    })
    if (ctx.method !== 'GET' && ctx.method !== 'DELETE') recordRequest(backend, caller, model)
  } finally {
    await body.discard()
  }
  if (!upstream) return answer.abandon()
  answer.facts.isCounted = route.counts === true
  const { clientTimeoutMs } = backend.config
  const relayed = withOurUploadUrl(ctx, upstream)
  await answer.relay(relayed, { clientTimeoutMs, end: 'ended' })
}

/** Clients of Anthropic send its version, or at least one of its keys; those of others never do. */
function formatOf(ctx: Context, { family }: ProviderRoute): ApiFormat {
  if (family !== 'shared') return family
  const isAnthropic =
    ctx.get('anthropic-version') !== '' ||
    providerOfKey(providerKeyFromRequest(ctx) ?? '') === 'anthropic'
  return isAnthropic ? 'anthropic' : 'openai'
}

/**
 * The model of a request, which chooses its provider. Without one the request is the provider's as a whole, and counts
 * under the first part of its path.
 *
 * @throws Refusal `invalid` as `resolveModel` and `pickProvider`
 */
async function chooseModel(
  ctx: Context,
  backend: ApiBackend,
  { account }: Caller,
  format: ApiFormat,
  named: string | undefined,
): Promise<ModelRef> {
  const { providers } = backend.config
  if (named === undefined) {
    const name = ctx.path.replace(/^\/(?:upload\/)?v1(?:beta)?\//, '').split('/')[0]!
    return { provider: pickProvider(ctx, format, providers), name }
  }
  const requested = named.replace(/%2F/gi, '/')
  // A model that is only looked up may be one that no list shows.
  const provider = ctx.method === 'GET' ? namedProvider(ctx, format, providers) : undefined
  if (provider === undefined)
    return resolveModel(backend, requested, format, () => openProviderKeys(backend, account))
  const prefix = `${provider}/`
  const name = requested.startsWith(prefix) ? requested.slice(prefix.length) : requested
  return { provider, name }
}

/**
 * A list shows what the account of a provider key keeps. The request's own key shows whose that is only at the
 * provider's own address: a server where the operator points may take any key, or need none.
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

/**
 * The address and the headers of a request at its provider.
 *
 * @throws Refusal `missing` for a Memory Key in the path; `unauthenticated` without a provider key
 */
async function targetOf(
  ctx: Context,
  backend: ApiBackend,
  caller: Caller,
  {
    format,
    pathModel,
    model,
  }: { format: ApiFormat; pathModel: string | undefined; model: ModelRef },
): Promise<ProviderTarget> {
  const whole =
    pathModel === undefined
      ? ctx.path
      : ctx.path.replace(`/models/${pathModel}`, () => `/models/${model.name}`)
  if (containsKey(decodeURI(whole))) {
    throw new Refusal('missing', 'No such path at the provider', 'A Memory Key goes into a header')
  }
  const path = isOpenAiFormat(format) ? whole.replace(/^\/v1/, '') : whole
  const key = await resolveProviderKey(ctx, backend, caller, model.provider)
  const target = buildProviderTarget(ctx, backend.config, { model, format, path, key })
  // Anthropic answers nothing without its version, which a client of OpenAI does not send.
  const version = format === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {}
  return { ...target, headers: { ...version, ...target.headers } }
}

/** Headers of Google with the address at which an upload goes on, or is controlled. */
const uploadAddresses = ['x-goog-upload-url', 'x-goog-upload-control-url']

/**
 * Google names the address at which an upload goes on. It becomes ours, whatever its host: clients send their headers
 * there, the Memory Key with them. One that no route of ours has is left out, and the client reports that.
 */
function withOurUploadUrl(ctx: Context, { headers, ...answer }: UpstreamResponse) {
  const ours = { ...headers }
  for (const name of uploadAddresses.filter(address => headers[address] !== undefined)) {
    const address = URL.parse(String(headers[name]))
    const start = address?.pathname.indexOf('/upload/') ?? -1
    if (address && start >= 0)
      ours[name] = `${publicOrigin(ctx)}${address.pathname.slice(start)}${address.search}`
    else delete ours[name]
  }
  return { ...answer, headers: ours }
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

/** The body of a request without memory; `name` is the model under the provider's name. */
type PassthroughBody = {
  /** The model it names. */
  model: string | undefined
  /** The bytes for the provider; null when there are none. Call once. */
  bytes(name?: string): Buffer | Readable | null
  /** Their number; undefined where it is unknown before they are sent. */
  byteLength?(name?: string): number | undefined
  /** The headers that describe unread bytes. */
  headers?: Record<string, string>
  /** Reads and drops what has not been sent. */
  discard(): Promise<void>
}

const discardNothing = async (): Promise<void> => {}

/** @throws Refusal `invalid`, `unsupported` or `too-large` for a body that the route does not take. */
function readBody(
  ctx: Context,
  route: ProviderRoute,
  format: ApiFormat,
): PassthroughBody | Promise<PassthroughBody> {
  if (route.body === undefined)
    return { model: undefined, bytes: () => null, discard: discardNothing }
  if (route.body === 'bytes') return streamUnread(ctx)
  const isForm = route.body === 'form' || (route.body === 'either' && ctx.is('multipart/form-data'))
  return isForm ? readForm(ctx, route) : readJson(ctx, route, format)
}

/** JSON over 20 MiB is not read: switches in it are not removed. */
async function readJson(
  ctx: Context,
  { counts, shape }: ProviderRoute,
  format: ApiFormat,
): Promise<PassthroughBody> {
  const read = await readJsonOrStream(ctx)
  if (!Buffer.isBuffer(read)) {
    await discardUnlessValid(read, () => shape?.check(sanitizeJson({ model: read.model })))
    return read
  }
  await admitBody(ctx, read.length)
  const body = read.length > 0 ? read : Buffer.from('{}')
  // What is counted is read as a model call is, switches in its messages included.
  const request = (counts ? dialects[format] : passThrough).parseRequest(body)
  const { model } = request
  releaseBody(ctx)
  shape?.check(sanitizeJson({ model }))
  const bytes = (name?: string): Buffer =>
    request.serialize({ model: name === model ? undefined : name })
  return { model, bytes, discard: discardNothing }
}

/** Bytes of any kind as they arrive, in their encoding. */
function streamUnread(ctx: Context): PassthroughBody {
  const { length } = ctx.request
  const isEmpty = !ctx.req.headers['transfer-encoding'] && (length ?? 0) === 0
  if (isEmpty) return { model: undefined, bytes: () => null, discard: discardNothing }
  allowSlowBody(ctx.req)
  const chunks = limitBytes(streamBody(ctx, 'identity'), length, uploadBytesMax)
  const encoding = ctx.get('content-encoding')
  return {
    model: undefined,
    bytes: () => Readable.from(chunks, { objectMode: false }),
    byteLength: () => length,
    headers: encoding === '' ? {} : { 'content-encoding': encoding },
    discard: async () => void (await chunks.return(undefined)),
  }
}

async function readForm(ctx: Context, { shape }: ProviderRoute): Promise<PassthroughBody> {
  requireMediaType(ctx, ['multipart/form-data'], 'Send multipart/form-data with file and model')
  const encoding = requireEncoding(ctx, ['identity'], 'Send it plain')
  const declared = ctx.request.length
  allowSlowBody(ctx.req)
  const share = bodyShareOf(ctx)
  const chunks = limitBytes(streamBody(ctx, encoding, share.dropped), declared, uploadBytesMax)
  const options = { isOptional: shape === undefined, share, byteLength: declared }
  const form = await readMultipartForm(chunks, ctx.get('content-type'), options)
  await discardUnlessValid(form, () => shape?.check(sanitizeJson({ model: form.model, file: '' })))
  return form
}

/** Unread bytes would hold up the connection of a client that is still sending: it would see no refusal. */
async function discardUnlessValid(
  body: Pick<PassthroughBody, 'discard'>,
  check: () => unknown,
): Promise<void> {
  try {
    check()
  } catch (error) {
    await body.discard()
    throw error
  }
}

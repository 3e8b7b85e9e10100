import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { SwitchQuery } from '#api/contract/contract.ts'
import type { SwitchQuery as SwitchFields } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admitBody, releaseBody } from '#api/edge/body-budget.ts'
import { readJsonBytes } from '#api/edge/body.ts'
import { authenticateBodyUser } from '#api/edge/memory-key-auth.ts'
import { checkHeaders } from '#api/edge/request-headers.ts'
import { readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import { embeddingModelForRequest, parseQuery, resolveSessionSpace } from '#api/edge/request.ts'
import { resolveProviderKey, type ProxyCaller } from '#api/proxy/credentials.ts'
import type { Dialect, ProxyRequest, UserTurn } from '#api/proxy/dialects/dialect.ts'
import { claimIdempotentCall, type IdempotentCall } from '#api/proxy/idempotency.ts'
import {
  buildProviderTarget,
  pickProvider,
  type ProviderTarget,
} from '#api/proxy/provider-target.ts'
import { resolveEmbeddingSpace, type EmbeddingSpace } from '#api/proxy/embedding-space.ts'
import type { RecallUse } from '#api/proxy/recall.ts'
import type { AnswerFacts } from '#api/proxy/response-headers.ts'
import type { StreamedBody } from '#api/proxy/streamed-body.ts'
import { readJsonOrStream } from '#api/proxy/streamed-json.ts'
import {
  asideOfHeaders,
  bodySwitches,
  headerSwitches,
  isAnyAllowed,
  noMemoryAccess,
  parseAsOfHeader,
  parseMetadataHeaders,
  querySwitches,
  resolveTtl,
  resolveContextBounds,
  resolveMemoryAccess,
  resolveShares,
  resolveTellsAbsence,
  resolveVerbatim,
  type CallMetadata,
  type ChannelSwitches,
  type MemoryAccess,
} from '#api/proxy/switches.ts'
import { requireNamedUser, type Caller } from '#shared/access/caller.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { idempotencyKeyNotTaken } from '#shared/core/refusals.ts'
import { InputNotes } from '#shared/core/lenient-input.ts'
import { withSaidOrigin } from '#shared/domain/origin.ts'
import { resolveModel, type ModelRef } from '#shared/models/resolve-model.ts'

/** An endpoint for model calls: one API format at one path. */
export type ProxyEndpoint = {
  dialect: Dialect
  /** The route under which a response is stored for its Idempotency-Key. */
  route: string
  /** The model of the path; absent where the body names it. */
  modelFromPath?(ctx: Context): string
  /** The path at the provider. */
  providerPath(model: string): string
}

/** A model call that has passed all checks: all that its steps read of the HTTP request. */
export type ProxyCall = {
  caller: Caller
  request: ProxyRequest
  /** The body of a call without memory that was too long to be read; `request` has then nothing but its model. */
  unread: StreamedBody | undefined
  model: ModelRef
  target: ProviderTarget
  idempotentCall: IdempotentCall
  memoryUse: MemoryUse
  /** Gives back the memory of the body, but that of so many characters. */
  releaseBody(kept?: number): void
}

/** What a call does with memory. */
export type MemoryUse = RecallUse &
  CallMetadata & {
    memoryAccess: MemoryAccess
    /** The id of a session whose memories are in the core. */
    conversation: string | null
    /** When what it stores expires, in epoch milliseconds. */
    expiresAt: number | undefined
    /** False: nothing of the exchange is shared with the member's organization. */
    shares: boolean
    verbatim: boolean
    /** Identifies the user's turn in all its calls; undefined without a user turn. */
    turnId: Buffer | undefined
    /** The earlier turns that got no final reply, with their ids. */
    unansweredBefore: readonly { turn: Buffer; messages: number }[]
  }

/**
 * Reads a model request and resolves what it needs: its access to memory, its model, its provider key. A refused
 * request has written nothing, and has not reached its provider.
 *
 * @param facts of the answer's headers: what is known of them is filled in, also for a refusal
 * @throws Refusal `invalid`, `unsupported` or `too-large` for what is wrong with the request; `unauthenticated` without
 *   a provider key; `unpaid`; and `conflict` for a repeated request.
 */
export async function readProxyCall(
  ctx: Context,
  backend: ApiBackend,
  authenticated: ProxyCaller,
  endpoint: ProxyEndpoint,
  facts: AnswerFacts,
): Promise<ProxyCall> {
  const { headers } = ctx
  const notes = new InputNotes()
  checkHeaders(ctx, { effect: 'forwards' }, notes)
  facts.ignored = notes.ignored
  const asOf = parseAsOfHeader(headers)
  const query: SwitchFields = ctx.querystring === '' ? {} : parseQuery(ctx, SwitchQuery, 'forwards')
  const channels = [headerSwitches(headers), querySwitches(query), { mode: query.memory_mode }]
  const { request, bytes, unread } = await readRequest(
    ctx,
    authenticated.caller,
    channels,
    endpoint.dialect,
  )
  const inBody = request.switches
  const switches = [...channels, ...bodySwitches(inBody)]
  const ttl = resolveTtl(headers, query, inBody)
  const caller = await callerNow(ctx, backend, authenticated, switches, inBody.memory_user)
  facts.keyRow = caller.keyRow
  const callMetadata = parseMetadataHeaders(headers, caller)
  const verbatim = resolveVerbatim(switches, caller.keyRow.storage)
  const { isOfProgram, ...access } = resolveCallMemory(ctx, caller, request, { switches, verbatim })
  const stored = resolveSessionSpace(ctx, caller.keyRow.storage, {
    inBody: inBody.session_id,
    query,
  })
  facts.session = stored.conversation

  const model = await resolveCallModel(ctx, backend, caller, { endpoint, request, unread })
  const usesMemory = isAnyAllowed(access.memoryAccess)
  if (usesMemory && !verbatim) facts.leftOut = request.leftOut
  const isUsed = usesMemory || access.retrieves
  const embeddings = isUsed
    ? embeddingModelForRequest(ctx, caller, inBody.embeddings, query.embeddings)
    : undefined
  const [space, key] = await Promise.all([
    resolveEmbeddingSpace(backend, embeddings),
    resolveProviderKey(ctx, backend, caller, model.provider),
  ])
  const memoryUse: MemoryUse = {
    ...access,
    ...callMetadata,
    metadata: isOfProgram
      ? withSaidOrigin('program', callMetadata.metadata)
      : callMetadata.metadata,
    ...stored,
    space,
    asOf,
    verbatim,
    tellsAbsence: resolveTellsAbsence(switches, caller.keyRow.storage),
    contextBounds: resolveContextBounds(switches),
    shares: resolveShares(switches),
    expiresAt: ttl === undefined ? undefined : backend.now() + ttl * 1000,
    ...identifyTurns(isUsed ? request.userTurn : undefined, {
      conversation: stored.conversation,
      space,
      stores: access.memoryAccess.store,
    }),
  }
  const path = endpoint.providerPath(model.name)
  const format = endpoint.dialect.apiFormat
  const target = buildProviderTarget(ctx, backend.config, { model, format, path, key })
  const idempotentCall = await claimIdempotentCall(ctx, backend, caller, {
    route: endpoint.route,
    hashedParts: () => hashedParts(memoryUse, ttl),
    json: bytes,
  })
  // A stored response is replayed whatever the balance is by now.
  if (!idempotentCall.storedResponse) await assertCanPay(caller, idempotentCall)
  const release = (kept?: number): void => releaseBody(ctx, kept)
  return { caller, request, unread, model, target, idempotentCall, memoryUse, releaseBody: release }
}

/** Reads the body; of one over 20 MiB, which only a call without memory may have, the model alone. */
async function readRequest(
  ctx: Context,
  { permissions, keyRow }: Caller,
  channels: readonly ChannelSwitches[],
  dialect: Dialect,
): Promise<{
  request: ProxyRequest
  /** The body as it came. */
  bytes: Buffer
  /** A body that was too long to be read; `request` has then nothing but its model. */
  unread: StreamedBody | undefined
}> {
  const usesMemory = isAnyAllowed(resolveMemoryAccess(permissions, channels, keyRow.storage))
  const bytes = usesMemory ? await readJsonBytes(ctx) : await readJsonOrStream(ctx)
  if (!Buffer.isBuffer(bytes)) {
    const request = dialect.parseRequest(Buffer.from(JSON.stringify({ model: bytes.model })))
    if (readIdempotencyKey(ctx) === undefined) return { request, bytes: emptyBody, unread: bytes }
    await bytes.discard()
    throw idempotencyKeyNotTaken('with a body over 20 MiB')
  }
  await admitBody(ctx, bytes.length)
  const body = bytes.length > 0 ? bytes : emptyBody
  // Large bodies are read in slices of the event loop: some 3 ms per MiB for each step.
  const isLarge = body.length >= 1024 * 1024
  const request = isLarge ? await dialect.parseInSlices(body) : dialect.parseRequest(body)
  dialect.bodyShape.check(request.typedFields)
  if (resolveVerbatim([...channels, ...bodySwitches(request.switches)], keyRow.storage))
    request.storeVerbatim()
  if (usesMemory && isLarge) await request.readAhead()
  return { request, bytes, unread: undefined }
}

/** As in all endpoints, an empty body counts as an empty object. */
const emptyBody = Buffer.from('{}')

/** The user that the request names, else the owner of its key: as it is now, when any memory may be used. */
async function callerNow(
  ctx: Context,
  backend: ApiBackend,
  { caller, verify }: ProxyCaller,
  switches: readonly ChannelSwitches[],
  memoryUser: string | undefined,
): Promise<Caller> {
  const access = resolveMemoryAccess(caller.permissions, switches, caller.keyRow.storage)
  if (memoryUser !== undefined)
    return authenticateBodyUser(ctx, backend, await verify(), memoryUser)
  if (!isAnyAllowed(access)) return caller
  const verified = await verify()
  requireNamedUser(verified)
  return verified
}

/**
 * Whether the call recalls and stores: by the rights of its caller, its switches and what kind of call it is; and whether
 * what it stores is a program's own, which only verbatim stores.
 */
function resolveCallMemory(
  { headers }: Pick<Context, 'headers'>,
  { permissions, keyRow }: Caller,
  request: ProxyRequest,
  { switches, verbatim }: { switches: readonly ChannelSwitches[]; verbatim: boolean },
): Pick<MemoryUse, 'memoryAccess' | 'aside' | 'retrieves'> & { isOfProgram: boolean } {
  const allowed = resolveMemoryAccess(permissions, switches, keyRow.storage)
  const kind = isAnyAllowed(allowed) ? (asideOfHeaders(headers) ?? request.aside) : undefined
  const isRecalledFor = kind !== undefined && switches.some(one => one.recallsAsides)
  const aside = isRecalledFor ? undefined : kind
  const retrieve = isRecalledFor && allowed.retrieve
  const memoryAccess = kind ? { ...(verbatim ? allowed : noMemoryAccess), retrieve } : allowed
  // An aside with a prompt of its own shares no prefix with the conversation that it is about.
  const retrieves = allowed.retrieve && aside !== 'apart'
  const isOfProgram = verbatim && (kind !== undefined || request.isMarksAlone)
  return { memoryAccess, aside, retrieves, isOfProgram }
}

/** The model of the path or body. A body that was not read goes to the provider that the client names. */
async function resolveCallModel(
  ctx: Context,
  backend: ApiBackend,
  { account }: Caller,
  {
    endpoint,
    request,
    unread,
  }: { endpoint: ProxyEndpoint } & Pick<ProxyCall, 'request' | 'unread'>,
): Promise<ModelRef> {
  const format = endpoint.dialect.apiFormat
  const requested = endpoint.modelFromPath?.(ctx) ?? request.model
  if (unread && requested === undefined) {
    return { provider: pickProvider(ctx, format, backend.config.providers), name: 'unread' }
  }
  return resolveModel(backend, requested ?? '', format, () => openProviderKeys(backend, account))
}

/** The ids of the user's turn and, where this call stores, of those before it without a final reply. */
function identifyTurns(
  userTurn: UserTurn | undefined,
  place: { conversation: string | null; space: EmbeddingSpace; stores: boolean },
): Pick<MemoryUse, 'turnId' | 'toTurnId' | 'unansweredBefore'> {
  const { conversation, space, stores } = place
  const toTurnId = (fingerprint: Buffer): Buffer =>
    createHash('sha256')
      .update(JSON.stringify([conversation, space.model]))
      .update(fingerprint)
      .digest()
  const unanswered = stores && userTurn ? userTurn.unansweredBefore : []
  return {
    turnId: userTurn && toTurnId(userTurn.fingerprint),
    toTurnId,
    unansweredBefore: unanswered.map(({ fingerprint, messages }) => ({
      turn: toTurnId(fingerprint),
      messages,
    })),
  }
}

/** What distinguishes a call from another with the same body. */
function hashedParts(memoryUse: MemoryUse, ttl: number | undefined): string[] {
  const { memoryAccess, contextBounds, session, conversation, space } = memoryUse
  const { shares, verbatim, tellsAbsence, asOf, metadata, filter } = memoryUse
  return [
    JSON.stringify([memoryAccess, contextBounds, session, conversation, space.model, ttl]),
    ...(shares ? [] : ['unshared']),
    ...(verbatim ? ['verbatim'] : []),
    ...(tellsAbsence ? ['absence'] : []),
    ...(asOf === undefined ? [] : [`as of ${asOf}`]),
    ...(metadata ? [`metadata ${JSON.stringify(metadata)}`] : []),
    ...(filter ? [`filter ${JSON.stringify(filter)}`] : []),
  ]
}

/** @throws Refusal `unpaid`; the Idempotency-Key is then free again. */
async function assertCanPay(caller: Caller, idempotentCall: IdempotentCall): Promise<void> {
  try {
    requireBalance(caller)
  } catch (error) {
    await idempotentCall.finish('nothing')
    throw error
  }
}

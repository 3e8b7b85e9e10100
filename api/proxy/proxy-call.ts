import { asideOfHeaders } from '#api/proxy/aside-headers.ts'
import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { resolveProviderKey, type ProxyCaller } from '#api/proxy/credentials.ts'
import type { Dialect, ProxyRequest, UserTurn } from '#api/proxy/dialects/dialect.ts'
import { setLeftOutHeader, setSessionHeader } from '#api/proxy/response-headers.ts'
import { claimIdempotentCall, type IdempotentCall } from '#api/proxy/idempotency.ts'
import { resolveEmbeddingSpace, type EmbeddingSpace } from '#api/proxy/embedding-space.ts'
import type { ContextBounds } from '#api/proxy/recall-with-timeout.ts'
import {
  resolveContextBounds,
  isAnyAllowed,
  noMemoryAccess,
  resolveMemoryAccess,
  resolveShares,
  resolveVerbatim,
  parseAsOfHeader,
  parseTtlHeader,
  type ChannelSwitches,
  type MemoryAccess,
  parseMetadataHeaders,
  type CallMetadata,
} from '#api/proxy/switches.ts'
import type { StreamedJson } from '#api/proxy/streamed-json.ts'
import {
  buildProviderTarget,
  type ProviderTarget,
  pickProvider,
} from '#api/proxy/provider-target.ts'
import { embeddingModelForRequest, resolveSessionSpace } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { resolveModel, type ModelRef } from '#shared/models/resolve-model.ts'
import { readCallerRequest } from '#api/proxy/read-request.ts'

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

/** A model call that has passed all checks: who calls, what is sent where, and what memory has to do with it. */
export type ProxyCall = {
  caller: Caller
  request: ProxyRequest
  /** The body of a call without memory that was too long to be read; `request` is then empty. */
  unread: StreamedJson | undefined
  model: ModelRef
  target: ProviderTarget
  idempotentCall: IdempotentCall
  memoryUse: MemoryUse
}

/** What a call does with memory. */
export type MemoryUse = CallMemory &
  TurnIds &
  CallMetadata & {
    contextBounds: ContextBounds
    /** Epoch ms: later memories are left out. */
    asOf: number | undefined
    session: string | null
    /** The id of a session whose memories are in the core. */
    conversation: string | null
    space: EmbeddingSpace
    /** When what it stores expires, in epoch milliseconds. */
    expiresAt: number | undefined
    /** False: nothing of the exchange is shared with the member's organization. */
    shares: boolean
    verbatim: boolean
  }

/** Whether a call recalls and stores. */
type CallMemory = {
  memoryAccess: MemoryAccess
  /** The call is a program's own: nothing is recalled for it or stored of it. */
  aside: ProxyRequest['aside']
  /** It reads memory, if only the blocks of earlier turns. */
  retrieves: boolean
}

/** The ids of the turns of a call in the vault. */
type TurnIds = {
  /** Identifies the user's turn in all its calls; undefined without a user turn. */
  turnId: Buffer | undefined
  /** As that id, of any turn of the conversation. */
  toTurnId(fingerprint: Buffer): Buffer
  /** The earlier turns that got no final reply, with their ids. */
  unansweredBefore: readonly { turn: Buffer; messages: number }[]
}

/**
 * Reads a model request and resolves what it needs: its access to memory, its model, its provider key. A
 * refused request has written nothing, and has not reached its provider.
 *
 * @throws Refusal `invalid`, `unsupported` or `too-large` for what is wrong with the request;
 *   `unauthenticated` without a provider key; `unpaid`; and `conflict` for a repeated request.
 */
export async function readProxyCall(
  ctx: Context,
  backend: ApiBackend,
  authenticated: ProxyCaller,
  endpoint: ProxyEndpoint,
): Promise<ProxyCall> {
  const ttl = parseTtlHeader(ctx)
  const asOf = parseAsOfHeader(ctx)
  const { query, request, bytes, unread, switches, caller } = await readCallerRequest(
    ctx,
    backend,
    authenticated,
    endpoint.dialect,
  )
  const callMetadata = parseMetadataHeaders(ctx, caller)
  const verbatim = resolveVerbatim(switches, caller.keyRow.storage)
  const access = resolveCallMemory(ctx, caller, request, { switches, verbatim })
  const stored = resolveSessionSpace(ctx, { inBody: request.switches.session_id, query })
  setSessionHeader(ctx, stored.conversation)

  const model = await resolveCallModel(ctx, backend, caller, { endpoint, request, unread })
  const usesMemory = isAnyAllowed(access.memoryAccess)
  if (usesMemory && !verbatim) setLeftOutHeader(ctx, request)
  const isUsed = usesMemory || access.retrieves
  const embeddings = isUsed
    ? embeddingModelForRequest(ctx, caller, request.switches.embeddings, query.embeddings)
    : undefined
  const [space, key] = await Promise.all([
    resolveEmbeddingSpace(backend, embeddings),
    resolveProviderKey(ctx, backend, caller, model.provider),
  ])
  const memoryUse: MemoryUse = {
    ...access,
    ...callMetadata,
    ...stored,
    space,
    asOf,
    verbatim,
    contextBounds: resolveContextBounds(switches),
    shares: resolveShares(switches),
    expiresAt: ttl === undefined ? undefined : backend.now() + ttl * 1000,
    ...identifyTurns(isUsed ? request.userTurn : undefined, {
      conversation: stored.conversation,
      space,
      stores: access.memoryAccess.store,
    }),
  }
  const target = buildProviderTarget(ctx, backend.config, {
    model,
    format: endpoint.dialect.apiFormat,
    path: endpoint.providerPath(model.name),
    ...(key !== undefined && { key }),
  })
  const idempotentCall = await claimIdempotentCall(ctx, backend, caller, {
    route: endpoint.route,
    hashedParts: hashedParts(memoryUse, ttl),
    json: bytes,
  })
  // A stored response is replayed whatever the balance is by now.
  if (!idempotentCall.storedResponse) await assertCanPay(caller, idempotentCall)
  return { caller, request, unread, model, target, idempotentCall, memoryUse }
}

/** What tells a call from another with the same body. */
function hashedParts(memoryUse: MemoryUse, ttl: number | undefined): string[] {
  const { memoryAccess, contextBounds, session, conversation, space } = memoryUse
  const { shares, verbatim, asOf, metadata, filter } = memoryUse
  return [
    JSON.stringify([memoryAccess, contextBounds, session, conversation, space.model, ttl]),
    ...(shares ? [] : ['unshared']),
    ...(verbatim ? ['verbatim'] : []),
    ...(asOf === undefined ? [] : [`as of ${asOf}`]),
    ...(metadata ? [`metadata ${JSON.stringify(metadata)}`] : []),
    ...(filter ? [`filter ${JSON.stringify(filter)}`] : []),
  ]
}

/** Whether the call recalls and stores: by the rights of its caller, its switches and what kind of call it is. */
function resolveCallMemory(
  ctx: Context,
  { permissions, keyRow }: Caller,
  request: ProxyRequest,
  { switches, verbatim }: { switches: readonly ChannelSwitches[]; verbatim: boolean },
): CallMemory {
  const allowed = resolveMemoryAccess(permissions, switches, keyRow.storage)
  const kind = isAnyAllowed(allowed) ? (asideOfHeaders(ctx) ?? request.aside) : undefined
  const isRecalledFor = kind !== undefined && switches.some(one => one.recallsAsides)
  const aside = isRecalledFor ? undefined : kind
  const retrieve = isRecalledFor && allowed.retrieve
  const memoryAccess = kind ? { ...(verbatim ? allowed : noMemoryAccess), retrieve } : allowed
  // An aside with a prompt of its own shares no prefix with the conversation that it is about.
  const retrieves = allowed.retrieve && aside !== 'apart'
  return { memoryAccess, aside, retrieves }
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

type TurnPlace = { conversation: string | null; space: EmbeddingSpace; stores: boolean }

/** The ids of the user's turn and, where this call stores, of those before it without a final reply. */
function identifyTurns(
  userTurn: UserTurn | undefined,
  { conversation, space, stores }: TurnPlace,
): TurnIds {
  const toTurnId = (fingerprint: Buffer): Buffer => turnIdOf(fingerprint, conversation, space)
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

const turnIdOf = (fingerprint: Buffer, session: string | null, { model }: EmbeddingSpace): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([session, model]))
    .update(fingerprint)
    .digest()

/** @throws Refusal `unpaid`; the Idempotency-Key is then free again. */
async function assertCanPay(caller: Caller, idempotentCall: IdempotentCall): Promise<void> {
  try {
    requireBalance(caller)
  } catch (error) {
    await idempotentCall.finish('nothing')
    throw error
  }
}

import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { SwitchQuery } from '#api/contract/contract.ts'
import { readJsonBytes } from '#api/edge/body.ts'
import { resolveProviderKey } from '#api/proxy/credentials.ts'
import type { Dialect, ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { setSessionHeader } from '#api/proxy/response-headers.ts'
import { claimIdempotentCall, type IdempotentCall } from '#api/proxy/idempotency.ts'
import { resolveEmbeddingSpace, type EmbeddingSpace } from '#api/proxy/recall-with-timeout.ts'
import {
  bodySwitches,
  resolveMemoryAccess,
  headerSwitches,
  querySwitches,
  parseTtlHeader,
  type MemoryAccess,
} from '#api/proxy/switches.ts'
import { buildProviderTarget, type ProviderTarget } from '#api/proxy/provider-target.ts'
import { embeddingModelForRequest, parseQuery, resolveSession } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { resolveModel, type ModelRef } from '#shared/models/resolve-model.ts'

/** A way to call models: one of the three formats, at one path. */
export type ProxyEndpoint = {
  dialect: Dialect
  /** Under which an answer is kept for its Idempotency-Key. */
  route: string
  /** The model of the path, where the body does not name it. */
  modelFromPath?(ctx: Context): string
  /** The path at the provider. */
  providerPath(model: string): string
}

/** A model call, once it is known to be one that may be made. */
export type ProxyCall = {
  caller: Caller
  request: ProxyRequest
  memoryAccess: MemoryAccess
  session: string | null
  space: EmbeddingSpace
  model: ModelRef
  target: ProviderTarget
  idempotentCall: IdempotentCall
  /** When what is stored of it is to be over, in epoch milliseconds. */
  expiresAt: number | undefined
  /** What stands for the user's turn in the vault, in all calls for it; undefined when nothing was said. */
  turnId: Buffer | undefined
}

/**
 * Reads a request for a model, and everything that it needs: what it may do with memory, which model it
 * means, who pays. Nothing has been written or asked of anybody else when it is refused.
 *
 * @throws Refusal `invalid`, `unsupported` or `too-large` for what is wrong with the request;
 *   `unauthenticated` without a provider key; `unpaid`; and `conflict` for a repeated request.
 */
export async function readProxyCall(
  ctx: Context,
  backend: Backend,
  caller: Caller,
  endpoint: ProxyEndpoint,
): Promise<ProxyCall> {
  const channels = [headerSwitches(ctx), querySwitches(parseQuery(ctx, SwitchQuery))]
  const ttl = parseTtlHeader(ctx)
  const bytes = await readJsonBytes(ctx)
  const request = parseAndValidateBody(bytes, endpoint)
  const memoryAccess = resolveMemoryAccess(caller.permissions, [
    ...channels,
    bodySwitches(request.switches),
  ])
  const session = resolveSession(ctx, request.switches.session_id)
  setSessionHeader(ctx, session)

  const model = await resolveModel(
    backend,
    endpoint.modelFromPath?.(ctx) ?? request.model ?? '',
    endpoint.dialect.apiFormat,
    () => openProviderKeys(backend, caller.account),
  )
  const usesMemory = Object.values(memoryAccess).some(Boolean)
  const requestedEmbeddings = usesMemory
    ? embeddingModelForRequest(ctx, caller, request.switches.embeddings)
    : undefined
  const [space, key] = await Promise.all([
    resolveEmbeddingSpace(backend, requestedEmbeddings),
    resolveProviderKey(ctx, backend, caller, model.provider),
  ])
  const target = buildProviderTarget(ctx, backend.config, {
    model,
    format: endpoint.dialect.apiFormat,
    path: endpoint.providerPath(model.name),
    ...(key !== undefined && { key }),
  })
  const idempotentCall = await claimIdempotentCall(ctx, backend, caller, {
    route: endpoint.route,
    asked: [JSON.stringify([memoryAccess, session, space.model, ttl]), bytes],
  })
  // A call that has been answered is answered again, however the account stands by now.
  if (!idempotentCall.storedResponse) await assertCanPay(caller, idempotentCall)
  const turnId = usesMemory ? turnIdOf(request, session, space) : undefined
  const expiresAt = ttl === undefined ? undefined : backend.now() + ttl * 1000
  return {
    caller,
    request,
    memoryAccess,
    session,
    space,
    model,
    target,
    idempotentCall,
    expiresAt,
    turnId,
  }
}

function turnIdOf({ userTurn }: ProxyRequest, session: string | null, { model }: EmbeddingSpace) {
  if (!userTurn) return undefined
  return createHash('sha256')
    .update(JSON.stringify([session, model]))
    .update(userTurn.fingerprint)
    .digest()
}

function parseAndValidateBody(bytes: Buffer, { dialect }: ProxyEndpoint): ProxyRequest {
  const request = dialect.parseRequest(bytes.length > 0 ? bytes : emptyBody)
  dialect.bodyShape.check(request.typedFields)
  return request
}

/** As everywhere in this API, no body is one without fields. */
const emptyBody = Buffer.from('{}')

/** @throws Refusal `unpaid`; the same call may then be sent again when it is paid for. */
async function assertCanPay(caller: Caller, idempotentCall: IdempotentCall): Promise<void> {
  try {
    requireBalance(caller)
  } catch (error) {
    await idempotentCall.finish('nothing')
    throw error
  }
}

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

/** A model call that has passed all checks. */
export type ProxyCall = {
  caller: Caller
  request: ProxyRequest
  memoryAccess: MemoryAccess
  session: string | null
  space: EmbeddingSpace
  model: ModelRef
  target: ProviderTarget
  idempotentCall: IdempotentCall
  /** When what it stores expires, in epoch milliseconds. */
  expiresAt: number | undefined
  /** Identifies the user's turn in the vault, in all its calls; undefined without a user turn. */
  turnId: Buffer | undefined
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
    hashedParts: [JSON.stringify([memoryAccess, session, space.model, ttl]), bytes],
  })
  // A stored response is replayed whatever the balance is by now.
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

/** As in all endpoints, an empty body counts as an empty object. */
const emptyBody = Buffer.from('{}')

/** @throws Refusal `unpaid`; the Idempotency-Key is then free again. */
async function assertCanPay(caller: Caller, idempotentCall: IdempotentCall): Promise<void> {
  try {
    requireBalance(caller)
  } catch (error) {
    await idempotentCall.finish('nothing')
    throw error
  }
}

import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { SwitchQuery } from '#api/contract/contract.ts'
import { readBytes } from '#api/proxy/body.ts'
import { payingKey } from '#api/proxy/credentials.ts'
import type { Dialect, ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { tellSession } from '#api/proxy/headers.ts'
import { claimCall, type Once } from '#api/proxy/once.ts'
import { spaceFor, type Space } from '#api/proxy/recall-in-time.ts'
import {
  bodySwitches,
  decide,
  headerSwitches,
  querySwitches,
  secondsToLive,
  type Decision,
} from '#api/proxy/switches.ts'
import { targetOf, type Target } from '#api/proxy/target.ts'
import { embeddingsOf, queryOf, sessionOf } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import { providerKeysOf } from '#shared/access/provider-key.ts'
import { resolveModel, type Model } from '#shared/models/resolve-model.ts'
import type { Shape } from '#shared/core/shape.ts'
import { wellFormed } from '#shared/core/sanitize-text.ts'

/** A way to call models: one of the three formats, at one path. */
export type Door = {
  dialect: Dialect
  /** What of a body the contract judges. */
  shape: Shape<unknown>
  /** Under which an answer is kept for its Idempotency-Key. */
  route: string
  /** The model of the path, where the body does not name it. */
  modelIn?(ctx: Context): string
  /** The path at the provider. */
  pathOf(model: string): string
}

/** A model call, once it is known to be one that may be made. */
export type Call = {
  caller: Caller
  request: ProxyRequest
  decision: Decision
  session: string | null
  space: Space
  model: Model
  target: Target
  once: Once
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
export async function readCall(
  ctx: Context,
  backend: Backend,
  caller: Caller,
  door: Door,
): Promise<Call> {
  const channels = [headerSwitches(ctx), querySwitches(queryOf(ctx, SwitchQuery))]
  const ttl = secondsToLive(ctx)
  const bytes = await readBytes(ctx)
  const request = readRequest(bytes, door)
  const decision = decide(caller.permits, [...channels, bodySwitches(request.switches)])
  const session = sessionOf(ctx, request.switches.session_id)
  tellSession(ctx, session)

  const model = await resolveModel(
    backend,
    door.modelIn?.(ctx) ?? request.model ?? '',
    door.dialect.family,
    () => providerKeysOf(backend, caller.account),
  )
  const usesMemory = Object.values(decision).some(Boolean)
  const asked = usesMemory ? embeddingsOf(ctx, request.switches.embeddings) : undefined
  const [space, key] = await Promise.all([
    spaceFor(backend, asked),
    payingKey(ctx, backend, caller, model.provider),
  ])
  const target = targetOf(ctx, backend.config, {
    model,
    format: door.dialect.family,
    path: door.pathOf(model.name),
    ...(key !== undefined && { key }),
  })
  const once = await claimCall(ctx, backend, caller, {
    route: door.route,
    asked: [JSON.stringify([decision, session, space.model, ttl]), bytes],
  })
  // A call that has been answered is answered again, however the account stands by now.
  if (!once.answered) await letIn(caller, once)
  const turnId = usesMemory ? turnIdOf(request, session, space) : undefined
  const expiresAt = ttl === undefined ? undefined : backend.now() + ttl * 1000
  return { caller, request, decision, session, space, model, target, once, expiresAt, turnId }
}

function turnIdOf({ turn }: ProxyRequest, session: string | null, { model }: Space) {
  if (!turn) return undefined
  return createHash('sha256')
    .update(JSON.stringify([session, model]))
    .update(turn.print)
    .digest()
}

function readRequest(bytes: Buffer, { dialect, shape }: Door): ProxyRequest {
  const request = dialect.read(bytes.length > 0 ? bytes : emptyBody)
  shape.check(wellFormed(parsed(bytes.length > 0 ? bytes : emptyBody)))
  return request
}

/** As everywhere in this API, no body is one without fields. */
const emptyBody = Buffer.from('{}')

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Refusal('invalid', 'The body is not valid JSON', 'Check quotes, commas and encoding')
  }
}

/** @throws Refusal `unpaid`; the same call may then be sent again when it is paid for. */
async function letIn(caller: Caller, once: Once): Promise<void> {
  try {
    requireBalance(caller)
  } catch (error) {
    await once.end('nothing')
    throw error
  }
}

import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  tryClaimIdempotencyKey,
  isKnownIdempotencyKey,
  saveIdempotentResponse,
  findIdempotentResponse,
  releaseIdempotencyClaim,
  unlockIdempotencyClaim,
  type IdempotentRequest,
} from '#shared/operations/idempotency.postgres.ts'

/** Ends a request whose answer is known already. */
class IdempotentReplay extends Error {
  readonly response: IdempotentResponse

  constructor(answer: IdempotentResponse) {
    super('replayed')
    this.response = answer
  }
}

type IdempotentResponse = { status: number; body: unknown }

type CallerKey = Pick<Caller, 'keyHash'>

/** What a request with an Idempotency-Key carries through its middleware. */
type IdempotencyContext = {
  backend: Pick<Backend, 'postgres' | 'seal'>
  key: string
  claim?: ActiveClaim
  /** The answer is kept already. */
  isStored?: boolean
}

type ActiveClaim = IdempotentRequest & {
  /** The id its work runs under. */
  operation: string
  /** An earlier request began it, and ended without an answer. */
  isResumed: boolean
}

type IdempotencyState = {
  /** Who asks: a Memory Key, or an admin. */
  caller?: CallerKey
  idempotent?: IdempotencyContext
}

const mutatingMethods = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const keyLengthMax = 256

/**
 * Answers a request with the `Idempotency-Key` of an earlier one as that one was answered. The claim
 * is made once the caller is known and the body is read and valid (`claimed`). A refused request gives
 * it back, so that a corrected one may use the same key. One that failed may have promised its work: the
 * next with its key goes on under the same operation.
 */
export function idempotency(backend: Pick<Backend, 'postgres' | 'seal'>): Middleware {
  return async (ctx, next) => {
    const key = ctx.get('idempotency-key')
    if (key === '' || !mutatingMethods.has(ctx.method)) return next()
    if (key.length > keyLengthMax) {
      throw new Refusal('invalid', `Idempotency-Key must have at most ${keyLengthMax} characters`)
    }
    const { query } = backend.postgres
    const context: IdempotencyContext = { backend, key }
    ;(ctx.state as IdempotencyState).idempotent = context
    try {
      await next()
      if (!context.claim || context.isStored) return
      if (ctx.status >= 300) await releaseClaim(query, context.claim, ctx.status >= 500)
      else
        await storeResponse(context, query, context.claim, { status: ctx.status, body: ctx.body })
    } catch (error) {
      if (!(error instanceof IdempotentReplay)) {
        // Where this fails too the claim runs out by itself, and the client hears of the first fault.
        if (context.claim)
          await releaseClaim(query, context.claim, isServiceFault(error)).catch(() => {})
        throw error
      }
      ctx.status = error.response.status
      ctx.body = error.response.body
    }
  }
}

/** Reasons that lie with the service or behind it. */
const serviceFaults = new Set<RefusalReason>(['upstream', 'unavailable'])

const isServiceFault = (error: unknown): boolean =>
  !(error instanceof Refusal) || serviceFaults.has(error.reason)

/** Work that may have been promised, by this request or the one it takes up, is not promised anew. */
const releaseClaim = (query: Query, claim: ActiveClaim, failed: boolean): Promise<void> =>
  (failed || claim.isResumed ? unlockIdempotencyClaim : releaseIdempotencyClaim)(query, claim)

const storeResponse = (
  { backend }: IdempotencyContext,
  query: Query,
  claim: ActiveClaim,
  answer: IdempotentResponse,
): Promise<void> =>
  saveIdempotentResponse(
    query,
    claim,
    backend.seal.seal(JSON.stringify(answer), sealContext(claim)),
  )

/**
 * Claims the request's Idempotency-Key, if it has one, for what it asks. Once per request.
 *
 * @throws Refusal `invalid` when the key was used for another request, `conflict` while that one runs.
 */
export async function claimIdempotencyKey(ctx: Context, payload: unknown): Promise<void> {
  const { idempotent, caller } = ctx.state as IdempotencyState
  if (!idempotent || idempotent.claim || !caller) return
  const { postgres, seal } = idempotent.backend
  const request = toIdempotentRequest(ctx, idempotent.key, caller, payload)
  const newOperationId = mintId()
  const claimResult = await tryClaimIdempotencyKey(postgres.query, request, newOperationId)
  if (claimResult.state === 'answered')
    throw new IdempotentReplay(unsealResponse(seal, request, claimResult.answer))
  if (claimResult.state === 'other') {
    throw new Refusal(
      'invalid',
      'This Idempotency-Key was used for another request',
      'Use a new key for a new request; the same key only to send the same one again',
    )
  }
  if (claimResult.state === 'running') {
    throw new Refusal(
      'conflict',
      'A request with this Idempotency-Key is still running',
      'Wait for its answer, or ask again in a moment',
    )
  }
  const { operation } = claimResult
  idempotent.claim = { ...request, operation, isResumed: operation !== newOperationId }
}

/** The id under which the work of this request runs: the same when it is sent again after a fault. */
export const operationId = (ctx: Context): string =>
  (ctx.state as IdempotencyState).idempotent?.claim?.operation ?? mintId()

/**
 * Whether this request asks for something new. One that takes up what an earlier one began was let in
 * then: how its account stands by now is no matter. Call `claimed` before.
 */
export const isFirstAttempt = (ctx: Context): boolean =>
  !(ctx.state as IdempotencyState).idempotent?.claim?.isResumed

/** Whether the request's Idempotency-Key was used before: to know it before the body has come. */
export async function hasUsedIdempotencyKey(ctx: Context): Promise<boolean> {
  const { idempotent, caller } = ctx.state as IdempotencyState
  if (!idempotent || !caller) return false
  const request = toIdempotentRequest(ctx, idempotent.key, caller, null)
  return isKnownIdempotencyKey(idempotent.backend.postgres.query, request)
}

/** Keeps the answer with the transaction that makes it true: both stand, or neither. */
export async function storeResponseInTransaction(
  ctx: Context,
  tx: Transaction,
  answer: IdempotentResponse,
): Promise<void> {
  const { idempotent } = ctx.state as IdempotencyState
  if (!idempotent?.claim) return
  await storeResponse(idempotent, tx.query, idempotent.claim, answer)
  idempotent.isStored = true
}

/**
 * Ends the request with the answer that is kept for its Idempotency-Key, for a caller whom nothing else
 * is open to. Without such an answer it does nothing.
 */
export async function replayStored(
  ctx: Context,
  caller: CallerKey,
  payload: unknown,
): Promise<void> {
  const { idempotent } = ctx.state as IdempotencyState
  if (!idempotent) return
  const { postgres, seal } = idempotent.backend
  const request = toIdempotentRequest(ctx, idempotent.key, caller, payload)
  const answer = await findIdempotentResponse(postgres.query, request)
  if (answer !== undefined) throw new IdempotentReplay(unsealResponse(seal, request, answer))
}

const unsealResponse = (
  seal: Backend['seal'],
  request: IdempotentRequest,
  answer: string,
): IdempotentResponse => JSON.parse(seal.open(answer, sealContext(request))) as IdempotentResponse

function toIdempotentRequest(
  ctx: Context,
  idempotencyKey: string,
  { keyHash }: CallerKey,
  payload: unknown,
): IdempotentRequest {
  const { search } = ctx.URL
  const bodyHash = createHash('sha256')
    .update(JSON.stringify([search, ctx.get('x-session-id'), ctx.get('x-embedding-model')]))
    .update(payload instanceof Uint8Array ? payload : JSON.stringify(payload ?? null))
    .digest()
  const route = `${ctx.method} ${ctx.path}`
  return { keyHash, route, idempotencyKey, bodyHash }
}

const sealContext = ({ route, idempotencyKey }: IdempotentRequest): string =>
  `idempotency:${route}:${idempotencyKey}`

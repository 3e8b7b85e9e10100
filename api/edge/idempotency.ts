import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal, type Reason } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  beginIdempotent,
  isKnownKey,
  keepAnswer,
  keptAnswer,
  releaseIdempotent,
  unlockIdempotent,
  type IdempotentRequest,
} from '#shared/operations/idempotency.postgres.ts'

/** Ends a request whose answer is known already. */
class Replay extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super('replayed')
    this.answer = answer
  }
}

type Answer = { status: number; body: unknown }

type Asker = Pick<Caller, 'keyHash'>

/** What a request with an Idempotency-Key carries through its middleware. */
type Idempotent = {
  backend: Pick<Backend, 'postgres' | 'seal'>
  key: string
  claim?: Claim
  /** The answer is kept already. */
  isKept?: boolean
}

type Claim = IdempotentRequest & {
  /** The id its work runs under. */
  operation: string
  /** An earlier request began it, and ended without an answer. */
  isTakenUp: boolean
}

type State = {
  /** Who asks: a Memory Key, or an admin. */
  caller?: Asker
  idempotent?: Idempotent
}

const methods = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const keyMax = 256

/**
 * Answers a request with the `Idempotency-Key` of an earlier one as that one was answered. The claim
 * is made once the caller is known and the body is read and valid (`claimed`). A refused request gives
 * it back, so that a corrected one may use the same key. One that failed may have promised its work: the
 * next with its key goes on under the same operation.
 */
export function idempotency(backend: Pick<Backend, 'postgres' | 'seal'>): Middleware {
  return async (ctx, next) => {
    const key = ctx.get('idempotency-key')
    if (key === '' || !methods.has(ctx.method)) return next()
    if (key.length > keyMax) {
      throw new Refusal('invalid', `Idempotency-Key must have at most ${keyMax} characters`)
    }
    const { query } = backend.postgres
    const own: Idempotent = { backend, key }
    ;(ctx.state as State).idempotent = own
    try {
      await next()
      if (!own.claim || own.isKept) return
      if (ctx.status >= 300) await letGo(query, own.claim, ctx.status >= 500)
      else await keep(own, query, own.claim, { status: ctx.status, body: ctx.body })
    } catch (error) {
      if (!(error instanceof Replay)) {
        // Where this fails too the claim runs out by itself, and the client hears of the first fault.
        if (own.claim) await letGo(query, own.claim, isFault(error)).catch(() => {})
        throw error
      }
      ctx.status = error.answer.status
      ctx.body = error.answer.body
    }
  }
}

/** Reasons that lie with the service or behind it. */
const faults = new Set<Reason>(['upstream', 'unavailable'])

const isFault = (error: unknown): boolean => !(error instanceof Refusal) || faults.has(error.reason)

/** Work that may have been promised, by this request or the one it takes up, is not promised anew. */
const letGo = (query: Query, claim: Claim, failed: boolean): Promise<void> =>
  (failed || claim.isTakenUp ? unlockIdempotent : releaseIdempotent)(query, claim)

const keep = ({ backend }: Idempotent, query: Query, claim: Claim, answer: Answer): Promise<void> =>
  keepAnswer(query, claim, backend.seal.seal(JSON.stringify(answer), placeOf(claim)))

/**
 * Claims the request's Idempotency-Key, if it has one, for what it asks. Once per request.
 *
 * @throws Refusal `invalid` when the key was used for another request, `conflict` while that one runs.
 */
export async function claimed(ctx: Context, asked: unknown): Promise<void> {
  const { idempotent, caller } = ctx.state as State
  if (!idempotent || idempotent.claim || !caller) return
  const { postgres, seal } = idempotent.backend
  const request = requestOf(ctx, idempotent.key, caller, asked)
  const minted = mintId()
  const begun = await beginIdempotent(postgres.query, request, minted)
  if (begun.state === 'answered') throw new Replay(opened(seal, request, begun.answer))
  if (begun.state === 'other') {
    throw new Refusal(
      'invalid',
      'This Idempotency-Key was used for another request',
      'Use a new key for a new request; the same key only to send the same one again',
    )
  }
  if (begun.state === 'running') {
    throw new Refusal(
      'conflict',
      'A request with this Idempotency-Key is still running',
      'Wait for its answer, or ask again in a moment',
    )
  }
  const { operation } = begun
  idempotent.claim = { ...request, operation, isTakenUp: operation !== minted }
}

/** The id under which the work of this request runs: the same when it is sent again after a fault. */
export const operationOf = (ctx: Context): string =>
  (ctx.state as State).idempotent?.claim?.operation ?? mintId()

/**
 * Whether this request asks for something new. One that takes up what an earlier one began was let in
 * then: how its account stands by now is no matter. Call `claimed` before.
 */
export const asksAnew = (ctx: Context): boolean =>
  !(ctx.state as State).idempotent?.claim?.isTakenUp

/** Whether the request's Idempotency-Key was used before: to know it before the body has come. */
export async function isSentAgain(ctx: Context): Promise<boolean> {
  const { idempotent, caller } = ctx.state as State
  if (!idempotent || !caller) return false
  const request = requestOf(ctx, idempotent.key, caller, null)
  return isKnownKey(idempotent.backend.postgres.query, request)
}

/** Keeps the answer with the transaction that makes it true: both stand, or neither. */
export async function answeredIn(ctx: Context, tx: Transaction, answer: Answer): Promise<void> {
  const { idempotent } = ctx.state as State
  if (!idempotent?.claim) return
  await keep(idempotent, tx.query, idempotent.claim, answer)
  idempotent.isKept = true
}

/**
 * Ends the request with the answer that is kept for its Idempotency-Key, for a caller whom nothing else
 * is open to. Without such an answer it does nothing.
 */
export async function replayFor(ctx: Context, caller: Asker, asked: unknown): Promise<void> {
  const { idempotent } = ctx.state as State
  if (!idempotent) return
  const { postgres, seal } = idempotent.backend
  const request = requestOf(ctx, idempotent.key, caller, asked)
  const answer = await keptAnswer(postgres.query, request)
  if (answer !== undefined) throw new Replay(opened(seal, request, answer))
}

const opened = (seal: Backend['seal'], request: IdempotentRequest, answer: string): Answer =>
  JSON.parse(seal.open(answer, placeOf(request))) as Answer

function requestOf(
  ctx: Context,
  idempotencyKey: string,
  { keyHash }: Asker,
  asked: unknown,
): IdempotentRequest {
  const { search } = ctx.URL
  const bodyHash = createHash('sha256')
    .update(JSON.stringify([search, ctx.get('x-session-id'), ctx.get('x-embedding-model')]))
    .update(asked instanceof Uint8Array ? asked : JSON.stringify(asked ?? null))
    .digest()
  const route = `${ctx.method} ${ctx.path}`
  return { keyHash, route, idempotency: idempotencyKey, bodyHash }
}

const placeOf = ({ route, idempotency }: IdempotentRequest): string =>
  `idempotency:${route}:${idempotency}`

import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import { mintId } from '#shared/ids.ts'
import type { Caller } from '#shared/key/caller.ts'
import {
  beginIdempotent,
  keepAnswer,
  releaseIdempotent,
  type IdempotentRequest,
} from '#shared/postgres/idempotency.ts'

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

/** What a request carries through its middleware. */
type State = {
  /** Who asks: a Memory Key, or an admin. */
  caller?: Asker
  claim?: (asked: unknown) => Promise<void>
  /** The id its work runs under, where it promises some. */
  operation?: string
}

const methods = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const keyMax = 256

/**
 * Answers a request with the `Idempotency-Key` of an earlier one as that one was answered. The claim
 * is made once the caller is known and the body is read and valid (`claimed`); a refused request gives
 * it back, so that a corrected one may use the same key.
 */
export function idempotency(backend: Pick<Backend, 'postgres' | 'seal'>): Middleware {
  return async (ctx, next) => {
    const key = ctx.get('idempotency-key')
    if (key === '' || !methods.has(ctx.method)) return next()
    if (key.length > keyMax) {
      throw new Refusal('invalid', `Idempotency-Key must have at most ${keyMax} characters`)
    }
    let request: IdempotentRequest | undefined
    const state = ctx.state as State
    state.claim = async asked => {
      if (request || !state.caller) return
      const wanted = requestOf(ctx, state.caller, key, asked)
      state.operation = await claim(backend, wanted)
      request = wanted
    }
    try {
      await next()
    } catch (error) {
      if (request) await releaseIdempotent(backend.postgres.query, request)
      if (!(error instanceof Replay)) throw error
      ctx.status = error.answer.status
      ctx.body = error.answer.body
      return
    }
    if (!request) return
    if (ctx.status >= 300) return releaseIdempotent(backend.postgres.query, request)
    const answer: Answer = { status: ctx.status, body: ctx.body }
    const sealed = backend.seal.seal(JSON.stringify(answer), placeOf(request))
    await keepAnswer(backend.postgres.query, request, sealed)
  }
}

/** Claims the request's Idempotency-Key, if it has one, for what it asks. Once per request. */
export const claimed = async (ctx: Context, asked: unknown): Promise<void> =>
  (ctx.state as State).claim?.(asked)

/** The id under which the work of this request runs: the same when it is sent again after a crash. */
export const operationOf = (ctx: Context): string => (ctx.state as State).operation ?? mintId()

async function claim(
  { postgres, seal }: Pick<Backend, 'postgres' | 'seal'>,
  request: IdempotentRequest,
): Promise<string> {
  const begun = await beginIdempotent(postgres.query, request, mintId())
  if (begun.state === 'begun') return begun.operation
  if (begun.state === 'answered') {
    throw new Replay(JSON.parse(seal.open(begun.answer, placeOf(request))) as Answer)
  }
  if (begun.state === 'other') {
    throw new Refusal(
      'invalid',
      'This Idempotency-Key was used for another request',
      'Use a new key for a new request; the same key only to send the same one again',
    )
  }
  throw new Refusal(
    'conflict',
    'A request with this Idempotency-Key is still running',
    'Wait for its answer, or ask again in a moment',
  )
}

function requestOf(
  ctx: Context,
  { keyHash }: Asker,
  idempotencyKey: string,
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

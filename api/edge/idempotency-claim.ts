import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { answerNotKept } from '#shared/core/refusals.ts'
import { mintId } from '#shared/core/ids.ts'
import {
  erasedResponse,
  findIdempotentResponse,
  releaseIdempotencyClaim,
  saveIdempotentResponse,
  tryClaimIdempotencyKey,
  unlockIdempotencyClaim,
  type IdempotentRequest,
} from '#shared/operations/idempotency.postgres.ts'

type ClaimBackend = Pick<Backend, 'postgres' | 'seal'>

const keyLengthMax = 256

/**
 * The Idempotency-Key of a request; undefined when it has none.
 *
 * @throws Refusal `invalid` when it is longer than 256 characters.
 */
export function readIdempotencyKey(ctx: Pick<Context, 'get'>): string | undefined {
  const key = ctx.get('idempotency-key')
  if (key.length > keyLengthMax)
    throw new Refusal('invalid', `Idempotency-Key must have at most ${keyLengthMax} characters`)
  return key === '' ? undefined : key
}

export type ClaimOutcome<Response> =
  | { state: 'claimed'; claim: IdempotencyClaim<Response> }
  /** An earlier request with this key was answered so. */
  | { state: 'answered'; response: Response }

/**
 * Claims an Idempotency-Key for 24 hours. Responses are stored sealed; `Response` must survive JSON.
 *
 * @param lockSeconds how long other requests with the key get a conflict while this one runs
 * @throws Refusal `invalid` when the key was used for another request, `conflict` while that one runs
 *   and when its response was erased.
 */
export async function claimIdempotencyKey<Response>(
  stores: ClaimBackend,
  request: IdempotentRequest,
  lockSeconds?: number,
): Promise<ClaimOutcome<Response>> {
  const newOperation = mintId()
  const result = await tryClaimIdempotencyKey(
    stores.postgres.query,
    request,
    newOperation,
    lockSeconds,
  )
  if (result.state === 'answered')
    return { state: 'answered', response: unsealResponse(stores, request, result.answer) }
  if (result.state === 'other') throw refusal('invalid', 'idempotencyKeyReused')
  if (result.state === 'running') throw refusal('conflict', 'idempotencyKeyRunning')
  const { operation } = result
  const isFirstAttempt = operation === newOperation
  return {
    state: 'claimed',
    claim: new IdempotencyClaim(stores, { ...request, operation, isFirstAttempt }),
  }
}

/** The response stored for a request; undefined when there is none. */
export async function findStoredResponse<Response>(
  stores: ClaimBackend,
  request: IdempotentRequest,
): Promise<Response | undefined> {
  const sealed = await findIdempotentResponse(stores.postgres.query, request)
  return sealed === undefined ? undefined : unsealResponse<Response>(stores, request, sealed)
}

/** An Idempotency-Key that the current request has claimed. */
export class IdempotencyClaim<Response> {
  /** The id under which the work of the request runs: the same in every attempt. */
  readonly operation: string
  /** False when an earlier request claimed the key and ended without an answer. */
  readonly isFirstAttempt: boolean
  readonly #stores: ClaimBackend
  readonly #request: IdempotentRequest

  constructor(
    stores: ClaimBackend,
    {
      operation,
      isFirstAttempt,
      ...request
    }: IdempotentRequest & { operation: string; isFirstAttempt: boolean },
  ) {
    this.operation = operation
    this.isFirstAttempt = isFirstAttempt
    this.#stores = stores
    this.#request = request
  }

  get #row() {
    return { ...this.#request, operation: this.operation }
  }

  /**
   * Stores the response for requests that repeat this one.
   *
   * @param query of a transaction, when the response must be committed with it
   */
  async store(response: Response, query = this.#stores.postgres.query): Promise<void> {
    const sealed = this.#stores.seal.seal(JSON.stringify(response), sealContext(this.#request))
    await saveIdempotentResponse(query, this.#row, sealed)
  }

  /** Gives the key back: another request may use it. */
  release(): Promise<void> {
    return releaseIdempotencyClaim(this.#stores.postgres.query, this.#row)
  }

  /** Lets the next attempt of the same request run at once, under the same operation. */
  unlock(): Promise<void> {
    return unlockIdempotencyClaim(this.#stores.postgres.query, this.#row)
  }
}

/** @throws Refusal `conflict` for an erased one. */
const unsealResponse = <Response>(
  { seal }: ClaimBackend,
  request: IdempotentRequest,
  sealed: string,
): Response => {
  if (sealed !== erasedResponse)
    return JSON.parse(seal.open(sealed, sealContext(request))) as Response
  throw answerNotKept(
    'Words that such answers showed were removed for good; read what is there now',
  )
}

const sealContext = ({ route, idempotencyKey }: IdempotentRequest): string =>
  `idempotency:${route}:${idempotencyKey}`

import { createHash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import { isOrgPath } from '#api/edge/auth.ts'
import {
  claimIdempotencyKey,
  findStoredResponse,
  readIdempotencyKey,
  type IdempotencyClaim,
} from '#api/edge/idempotency-claim.ts'
import type { Backend } from '#shared/backend.ts'
import {
  canonicalJson,
  canonicalJsonSteps,
  updateHashInSteps,
} from '#shared/core/canonical-json.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { runInSlices } from '#shared/core/event-loop.ts'
import { isUuid, mintId } from '#shared/core/ids.ts'
import {
  isKnownIdempotencyKey,
  type IdempotentRequest,
} from '#shared/operations/idempotency.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

type JsonResponse = { status: number; body: unknown }

/** Ends a request that has been answered before: `replayResponses` answers it so again. */
class IdempotentReplay extends Error {
  readonly response: JsonResponse

  constructor(response: JsonResponse) {
    super('replayed')
    this.response = response
  }
}

/** Runs a request; one that repeats an answered request gets the stored response, and a header that says so. */
export async function replayResponses(ctx: Context, serve: () => Promise<void>): Promise<void> {
  try {
    await serve()
  } catch (error) {
    if (!(error instanceof IdempotentReplay)) throw error
    ctx.set('Idempotent-Replayed', 'true')
    ctx.status = error.response.status
    ctx.body = error.response.body
  }
}

/** The claim of a request, also of one without an Idempotency-Key. */
export type RequestClaim = {
  /** The id under which the work of this request runs: the same when it is repeated after a fault. */
  operation: string
  /** False when an earlier request began this work: admission was checked then. */
  isFirstAttempt: boolean
  /** Stores the response in the transaction that makes it true. */
  storeInTransaction(tx: Transaction, response: JsonResponse): Promise<void>
}

/** The claim of a request without an Idempotency-Key. */
export const unclaimed = (): RequestClaim => ({
  operation: mintId(),
  isFirstAttempt: true,
  storeInTransaction: async () => {},
})

const mutatingMethods = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * A route of the contract with the parameters of a request: one text for every spelling of its path, since
 * erasures find stored responses by it.
 */
export const toStoredRoute = (route: string, params: Readonly<Record<string, string>>): string =>
  route.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name] ?? ''
    return isUuid(value) ? value.toLowerCase() : encodeURIComponent(value)
  })

/** The key of a request that may change something; others are not claimed. */
const mutationKey = (ctx: Context): string | undefined =>
  mutatingMethods.has(ctx.method) ? readIdempotencyKey(ctx) : undefined

/** Refuses an Idempotency-Key that is too long before anything else is checked. */
export const checkIdempotencyKey: Middleware = (ctx, next) => {
  if (!isOrgPath(ctx)) mutationKey(ctx)
  return next()
}

/**
 * The Idempotency-Key of a request whose caller is known. It is claimed once the request is valid. A
 * refused request gives it back, so that a corrected request may use it. A request that failed may have
 * accepted its work already: the next with its key continues under the same operation.
 */
export class RequestIdempotency {
  readonly #ctx: Context
  readonly #backend: Pick<Backend, 'postgres' | 'seal'>
  readonly #keyHash: Buffer
  readonly #route: string
  readonly #key: string | undefined
  #claim: IdempotencyClaim<JsonResponse> | undefined
  #isStored = false

  /**
   * @param identity the hash of the credential, and the route as `toStoredRoute` writes it
   * @param identity.takesKey false: the endpoint changes nothing, and no answer of it is kept
   * @throws Refusal `invalid` when the key is longer than 256 characters.
   */
  constructor(
    ctx: Context,
    backend: Pick<Backend, 'postgres' | 'seal'>,
    {
      keyHash,
      route,
      takesKey = true,
    }: Pick<IdempotentRequest, 'keyHash' | 'route'> & { takesKey?: boolean },
  ) {
    this.#ctx = ctx
    this.#backend = backend
    this.#keyHash = keyHash
    this.#route = route
    this.#key = takesKey ? mutationKey(ctx) : undefined
  }

  /**
   * @param payload hashed with query and headers: a body, or a hash of it
   * @throws Refusal `invalid` when the key was used for another request, `conflict` while that one runs.
   */
  async claim(payload: unknown): Promise<RequestClaim> {
    const request = await this.#toRequest(payload)
    if (!request) return unclaimed()
    const outcome = await claimIdempotencyKey<JsonResponse>(this.#backend, request)
    if (outcome.state === 'answered') throw new IdempotentReplay(outcome.response)
    const { claim } = outcome
    this.#claim = claim
    return {
      operation: claim.operation,
      isFirstAttempt: claim.isFirstAttempt,
      storeInTransaction: async (tx, response) => {
        await claim.store(response, tx.query)
        this.#isStored = true
      },
    }
  }

  /** Whether the key was used within 24 hours, for any body: known before the body has arrived. */
  async wasUsed(): Promise<boolean> {
    const request = await this.#toRequest(null)
    return request !== undefined && isKnownIdempotencyKey(this.#backend.postgres.query, request)
  }

  /** Ends the request with its stored response, if there is one; claims nothing. */
  async replayStored(payload: unknown): Promise<void> {
    const request = await this.#toRequest(payload)
    if (!request) return
    const response = await findStoredResponse<JsonResponse>(this.#backend, request)
    if (response !== undefined) throw new IdempotentReplay(response)
  }

  /**
   * Stores the response that the handler has set. Gives the key back for one that is no success, or a dry run: its
   * repeat is answered again from the stores.
   */
  async settle(): Promise<void> {
    if (!this.#claim || this.#isStored) return
    const { status, body } = this.#ctx
    const isDryRun = (Object(body) as { dry_run?: unknown }).dry_run === true
    if (status < 300 && !isDryRun) await this.#claim.store({ status, body })
    else await this.#giveBack(this.#claim, status >= 500)
  }

  /** Gives the key back after an error. When that fails too, the lock of the claim runs out. */
  async abandon(reason: unknown): Promise<void> {
    if (this.#claim) await this.#giveBack(this.#claim, isServiceFault(reason)).catch(() => {})
  }

  /** Work that this attempt or an earlier one may have accepted keeps its operation. */
  #giveBack(claim: IdempotencyClaim<JsonResponse>, failed: boolean): Promise<void> {
    return failed || !claim.isFirstAttempt ? claim.unlock() : claim.release()
  }

  async #toRequest(payload: unknown): Promise<IdempotentRequest | undefined> {
    const ctx = this.#ctx
    if (this.#key === undefined) return undefined
    const scope = canonicalJson([ctx.query, ctx.get('x-session-id'), ctx.get('x-embedding-model')])
    const bodyHash = createHash('sha256').update(scope)
    await runInSlices(updateHashInSteps(bodyHash, await toHashedParts(payload)))
    return {
      keyHash: this.#keyHash,
      route: this.#route,
      idempotencyKey: this.#key,
      bodyHash: bodyHash.digest(),
    }
  }
}

/** A body in its canonical form, in slices; the hash of one as it is. */
const toHashedParts = async (payload: unknown): Promise<(string | Uint8Array)[]> =>
  payload instanceof Uint8Array ? [payload] : runInSlices(canonicalJsonSteps(payload))

/** Reasons of faults in the service or behind it. */
const serviceFaults = new Set<RefusalReason>(['upstream', 'unavailable'])

const isServiceFault = (error: unknown): boolean =>
  !(error instanceof Refusal) || serviceFaults.has(error.reason)

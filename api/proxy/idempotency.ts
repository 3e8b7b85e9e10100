import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { claimIdempotencyKey, readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'

/** A provider's response to replay; null for a stream, or a response that is too long to store. */
type StoredResponse = { status: number; type: string; body: string } | null

/** A model call that runs once for all requests with its `Idempotency-Key`. */
export type IdempotentCall = {
  /** Its operation id: the same when the request is repeated after a crash. */
  operation: string
  /** The response of the first request, to replay; undefined when the call is to run. */
  storedResponse?: StoredResponse
  /** Whether `finish` stores the response's bytes. */
  shouldStore: boolean
  /**
   * Ends the call. A complete, successful response is stored; after any other end the same request may be
   * sent again.
   */
  finish(response: StoredResponse | 'nothing'): Promise<void>
}

/** Longest response that is stored; a stream never is. */
export const storedBytesMax = 1024 * 1024
/** Longest response after its first byte: as long, repeated requests are refused as still running. */
const replyMaxSeconds = 300

/**
 * Claims the `Idempotency-Key` of a call, when it has one.
 *
 * @param route what is called, as `shared/vault/base/erasures.postgres.ts` knows it: stored responses must be erased with memories
 * @throws Refusal `invalid` when the key was used for another call, `conflict` while the first still runs.
 */
export async function claimIdempotentCall(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'seal' | 'config'>,
  { keyHash }: Caller,
  { route, hashedParts }: { route: string; hashedParts: readonly (string | Uint8Array)[] },
): Promise<IdempotentCall> {
  const idempotencyKey = readIdempotencyKey(ctx)
  const finish = async (): Promise<void> => {}
  if (idempotencyKey === undefined) return { operation: mintId(), shouldStore: false, finish }
  const bodyHash = createHash('sha256')
  for (const part of [ctx.path, ctx.querystring, ...hashedParts]) {
    bodyHash.update(`${part.length}:`).update(part)
  }
  const outcome = await claimIdempotencyKey<StoredResponse>(
    backend,
    { keyHash, route, idempotencyKey, bodyHash: bodyHash.digest() },
    backend.config.providerFirstByteMs / 1000 + replyMaxSeconds,
  )
  if (outcome.state === 'answered')
    return { operation: '', storedResponse: outcome.response, shouldStore: false, finish }
  const { claim } = outcome
  return {
    operation: claim.operation,
    shouldStore: true,
    finish: response => (response === 'nothing' ? claim.release() : claim.store(response)),
  }
}

/**
 * Replays the response of the first request.
 *
 * @throws Refusal `conflict` when that was a stream or too long to store.
 */
export function replayStoredResponse(ctx: Context, stored: StoredResponse): void {
  if (stored === null) {
    throw new Refusal(
      'conflict',
      'The request with this Idempotency-Key has been answered, and the answer cannot be given again',
      'Streams and answers over 1 MiB are not kept; send a new key to ask the model again',
    )
  }
  ctx.status = stored.status
  if (stored.type !== '') ctx.set('Content-Type', stored.type)
  ctx.body = Buffer.from(stored.body, 'base64')
}

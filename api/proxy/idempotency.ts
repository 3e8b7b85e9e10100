import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { claimIdempotencyKey, readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'

/** A provider's answer as it was given; null when it was a stream, or too long to keep. */
type StoredResponse = { status: number; type: string; body: string } | null

/** A model call that runs once, however often it is sent with the same `Idempotency-Key`. */
export type IdempotentCall = {
  /** The id it works under: the same when it is sent again after a crash. */
  operation: string
  /** The first answer, when it has been given before: nothing is left to do. */
  storedResponse?: StoredResponse
  /** Whether the answer's bytes will be wanted. */
  shouldStore: boolean
  /**
   * Ends it. Only a good answer that came whole is kept; whoever got an error, or hung up, may send the
   * same again.
   */
  finish(response: StoredResponse | 'nothing'): Promise<void>
}

/** Longest answer that is kept; a stream, which nobody can hear twice alike, never is. */
export const storedBytesMax = 1024 * 1024
/**
 * A model may take its time to begin, and so long to say it all; whoever sends the call again meanwhile is
 * told to wait.
 */
const replyMaxSeconds = 300

/**
 * Claims the `Idempotency-Key` of a call, when it has one.
 *
 * @param route what is called, as `shared/vault/base/erasures.postgres.ts` knows it: an answer holds what was said
 * @throws Refusal `invalid` when the key was used for another call, `conflict` while the first still runs
 *   or when its answer cannot be given again.
 */
export async function claimIdempotentCall(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'seal' | 'config'>,
  { keyHash }: Caller,
  { route, asked: hashedParts }: { route: string; asked: readonly (string | Uint8Array)[] },
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
 * Answers again as the first time.
 *
 * @throws Refusal `conflict` when that was a stream or too long to keep.
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

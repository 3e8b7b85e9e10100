import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  beginIdempotent,
  keepAnswer,
  releaseIdempotent,
  type IdempotentRequest,
} from '#shared/operations/idempotency.postgres.ts'

/** A provider's answer as it was given; null when it was a stream, or too long to keep. */
type Kept = { status: number; type: string; body: string } | null

/** A model call that runs once, however often it is sent with the same `Idempotency-Key`. */
export type Once = {
  /** The id it works under: the same when it is sent again after a crash. */
  operation: string
  /** The first answer, when it has been given before: nothing is left to do. */
  answered?: Kept
  /** Whether the answer's bytes will be wanted. */
  keeps: boolean
  /**
   * Ends it. Only a good answer that came whole is kept; whoever got an error, or hung up, may send the
   * same again.
   */
  end(kept: Kept | 'nothing'): Promise<void>
}

/** Longest answer that is kept; a stream, which nobody can hear twice alike, never is. */
export const keptBytesMax = 1024 * 1024
/**
 * A model may take its time to begin, and so long to say it all; whoever sends the call again meanwhile is
 * told to wait.
 */
const sayingSeconds = 300
const keyMax = 256

/**
 * Claims the `Idempotency-Key` of a call, when it has one.
 *
 * @param route what is called, as `shared/vault/base/erasures.postgres.ts` knows it: an answer holds what was said
 * @throws Refusal `invalid` when the key was used for another call, `conflict` while the first still runs
 *   or when its answer cannot be given again.
 */
export async function claimCall(
  ctx: Context,
  { postgres, seal, config }: Pick<Backend, 'postgres' | 'seal' | 'config'>,
  { keyHash }: Caller,
  { route, asked }: { route: string; asked: readonly (string | Uint8Array)[] },
): Promise<Once> {
  const idempotency = ctx.get('idempotency-key')
  const end = async (): Promise<void> => {}
  if (idempotency === '') return { operation: mintId(), keeps: false, end }
  if (idempotency.length > keyMax) {
    throw new Refusal('invalid', `Idempotency-Key must have at most ${keyMax} characters`)
  }
  const bodyHash = createHash('sha256')
  for (const part of [ctx.path, ctx.querystring, ...asked]) {
    bodyHash.update(`${part.length}:`).update(part)
  }
  const request: IdempotentRequest = { keyHash, route, idempotency, bodyHash: bodyHash.digest() }
  const place = `idempotency:${route}:${idempotency}`

  const lockSeconds = config.providerFirstByteMs / 1000 + sayingSeconds
  const begun = await beginIdempotent(postgres.query, request, mintId(), lockSeconds)
  if (begun.state === 'answered') {
    const answered = JSON.parse(seal.open(begun.answer, place)) as Kept
    return { operation: '', answered, keeps: false, end }
  }
  if (begun.state !== 'begun') throw taken[begun.state]()
  const { operation } = begun
  const claim = { ...request, operation }
  return {
    operation,
    keeps: true,
    end: kept =>
      kept === 'nothing'
        ? releaseIdempotent(postgres.query, claim)
        : keepAnswer(postgres.query, claim, seal.seal(JSON.stringify(kept), place)),
  }
}

const taken = {
  other: () =>
    new Refusal(
      'invalid',
      'This Idempotency-Key was used for another request',
      'Use a new key for a new request; the same key only to send the same one again',
    ),
  running: () =>
    new Refusal(
      'conflict',
      'A request with this Idempotency-Key is still running',
      'Wait for its answer, or ask again in a moment',
    ),
}

/**
 * Answers again as the first time.
 *
 * @throws Refusal `conflict` when that was a stream or too long to keep.
 */
export function answerAgain(ctx: Context, kept: Kept): void {
  if (kept === null) {
    throw new Refusal(
      'conflict',
      'The request with this Idempotency-Key has been answered, and the answer cannot be given again',
      'Streams and answers over 1 MiB are not kept; send a new key to ask the model again',
    )
  }
  ctx.status = kept.status
  if (kept.type !== '') ctx.set('Content-Type', kept.type)
  ctx.body = Buffer.from(kept.body, 'base64')
}

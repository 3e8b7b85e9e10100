import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { claimIdempotencyKey, readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import { parseLargeJson } from '#api/edge/parse-json.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Backend } from '#shared/backend.ts'
import { canonicalJsonSteps, updateHashInSteps } from '#shared/core/canonical-json.ts'
import { runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { mintId } from '#shared/core/ids.ts'
import { countJsonInSteps, parsedBodyBounds } from '#shared/core/json-bounds.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** A provider's response to replay; null for a stream, or a response that is too long to store. */
export type StoredResponse = { status: number; type: string; body: string } | null

/** A model call that runs once for all requests with its `Idempotency-Key`. */
export type IdempotentCall = {
  /** Its operation id: the same when the request is repeated after a crash. */
  operation: string
  /** The response of the first request, to replay; undefined when the call is to run. */
  storedResponse?: StoredResponse
  /** Whether `finish` stores the response's bytes. */
  shouldStore: boolean
  /**
   * Ends the call. A complete, successful response is stored; after any other end the same request may be sent again.
   */
  finish(response: StoredResponse | 'nothing'): Promise<void>
}

/** Longest response that is stored; a stream never is. */
const storedBytesMax = 1024 * 1024
/** Longest response after its first byte: as long, repeated requests are refused as still running. */
const replyMaxSeconds = 300

/**
 * Claims the `Idempotency-Key` of a call, when it has one.
 *
 * @param route what is called, as `shared/vault/base/erasures.postgres.ts` knows it: stored responses must be erased with memories
 * @throws Refusal `invalid` when the key was used for another call, `conflict` while the first still runs.
 */
export async function claimIdempotentCall(
  ctx: Pick<Context, 'get' | 'path' | 'querystring'>,
  backend: Pick<Backend, 'postgres' | 'seal' | 'config'>,
  { keyHash }: Caller,
  call: {
    route: string
    hashedParts(): readonly string[]
    /** A JSON body: the order of its fields makes no difference. */
    json: Uint8Array
  },
): Promise<IdempotentCall> {
  const { route, hashedParts, json } = call
  const idempotencyKey = readIdempotencyKey(ctx)
  if (idempotencyKey === undefined) return runOnce(mintId())
  const parts = [ctx.path, ctx.querystring, ...hashedParts()]
  const bodyHash = await runInSlices(hashCallInSteps(parts, json))
  const outcome = await claimIdempotencyKey<StoredResponse>(
    backend,
    { keyHash, route, idempotencyKey, bodyHash },
    backend.config.providerFirstByteMs / 1000 + replyMaxSeconds,
  )
  if (outcome.state === 'answered') return { ...runOnce(''), storedResponse: outcome.response }
  const { claim } = outcome
  return {
    operation: claim.operation,
    shouldStore: true,
    finish: response => (response === 'nothing' ? claim.release() : claim.store(response)),
  }
}

const runOnce = (operation: string): IdempotentCall => ({
  operation,
  shouldStore: false,
  finish: async () => {},
})

/** Each part counts with its length before it; of a body that is the length of its canonical form. */
function* hashCallInSteps(parts: readonly string[], json: Uint8Array): Steps<Buffer> {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}:`).update(part)
  const pieces = yield* canonicalBodySteps(json)
  hash.update(`${pieces.reduce((sum, { length }) => sum + length, 0)}:`)
  yield* updateHashInSteps(hash, pieces)
  return hash.digest()
}

/**
 * The canonical form of a JSON body in pieces. What is no JSON for `JSON.parse` stays as it is, and so does what holds
 * more than other bodies may: those of calls without memory have not been counted before.
 */
function* canonicalBodySteps(bytes: Uint8Array): Steps<(string | Uint8Array)[]> {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  // `JSON.parse` takes no byte order mark.
  if (body[0] === 0xef) return [bytes]
  try {
    yield* countJsonInSteps(body, parsedBodyBounds)
    return yield* canonicalJsonSteps(yield* parseLargeJson(body))
  } catch {
    return [bytes]
  }
}

/** Copies the bytes of a response while they are relayed, to replay them for an Idempotency-Key. */
export class ResponseCopy {
  readonly #status: number
  readonly #type: string
  readonly #chunks: Buffer[] = []
  /** Infinity for a response that cannot be replayed: an event stream or an encoded body. */
  #bytes: number

  constructor({ status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>) {
    this.#status = status
    this.#type = String(headers['content-type'] ?? '')
    const isReplayable = !/event-stream/i.test(this.#type) && !headers['content-encoding']
    this.#bytes = isReplayable ? 0 : Infinity
  }

  append(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes <= storedBytesMax) this.#chunks.push(chunk)
    else this.#chunks.length = 0
  }

  /** @returns null for a response that cannot be replayed, or over 1 MiB. */
  toStoredResponse(): StoredResponse {
    if (this.#bytes > storedBytesMax) return null
    const body = Buffer.concat(this.#chunks).toString('base64')
    return { status: this.#status, type: this.#type, body }
  }
}

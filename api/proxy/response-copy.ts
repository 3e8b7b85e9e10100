import { storedBytesMax, type IdempotentCall } from '#api/proxy/idempotency.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

type StoredResponse = Exclude<IdempotentCall['storedResponse'], undefined>

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

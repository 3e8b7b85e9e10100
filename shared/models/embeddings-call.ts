import { setTimeout as delay } from 'node:timers/promises'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { timeProviderCall } from '#shared/core/timed-fetch.ts'
import { isPassingStatus, ModelRefusal } from '#shared/models/model-refusal.ts'
import { providerWords } from '#shared/models/provider-words.ts'

export type EmbeddingsEndpoint = {
  /** As errors name the model. */
  model: string
  url: string
  /** Empty for a server without keys. */
  apiKey: string
  /** The header that carries the key. */
  keyHeader: Readonly<Record<string, string>>
  /** Fields of the body, without `input`. */
  fields: Readonly<Record<string, unknown>>
}

export type CallPolicy = {
  /** The time of one try. */
  timeoutMs: number
  /** Further tries after a rate limit, an overload, or no answer. */
  retries: number
  /**
   * A late try ends only after this time: a server that is loading its model gives up when its client leaves (Ollama:
   * "client connection closed before server finished loading, aborting load"). Its answer counts during later tries.
   */
  leaveMs?: number
  /** Ends the call. */
  signal?: AbortSignal | undefined
}

/** A refusal of an embedding model, or its silence. */
export class EmbeddingRefusal extends ModelRefusal {
  /** The number of pieces to cut the inputs into; undefined where smaller ones would be refused too. */
  readonly pieces: number | undefined

  /** @param words follow the name of the model */
  constructor(model: string, words: string, status: number | undefined, pieces?: number) {
    const message = `The embedding model ${model} ${words}`
    super('upstream', message, hints[status ?? 0] ?? usualHint, { model, status })
    this.pieces = pieces
  }
}

const usualHint =
  'Try again; if it lasts, the operator should check the provider, its key and the name of the model'
const keyHint = 'The operator should check the key of the provider and what it may use'
const hints: Record<number, string> = {
  401: keyHint,
  403: keyHint,
  404: 'The operator should check the name of the model and the address of the provider',
  429: 'The provider limits its use; try again later',
}

/** Other statuses are about the caller, the address or the moment. */
const isAboutInputs = (status: number): boolean =>
  status <= 500 && ![401, 402, 403, 404, 405, 407, 408, 409, 425, 429].includes(status)

/** Statuses of gateways that waited too long for a batch. */
const isLate = (status: number): boolean => status === 504 || status === 524

const bodyBytesMax = 64_000

/**
 * Asks for the vectors of the inputs. Rate limits, overloads and lost connections are tried again, after `Retry-After`
 * or 0.5, 1, 2, … seconds.
 *
 * @throws EmbeddingRefusal, with the provider's words; the signal's reason when that fires.
 */
export async function callEmbeddings(
  endpoint: EmbeddingsEndpoint,
  input: readonly string[],
  { timeoutMs, retries, leaveMs = timeoutMs, signal }: CallPolicy,
): Promise<Float32Array[]> {
  const late: Promise<Try>[] = []
  for (let attempt = 0; ; attempt++) {
    const running = tryOnce(endpoint, input, leaveMs, signal)
    const { vectors, refusal, retryAfterMs } = await withTimeout(
      Promise.race([running, ...late.map(onlyVectors)]),
      timeoutMs,
      () => {
        late.push(running)
        return lateTry(endpoint.model, input, timeoutMs)
      },
    )
    if (vectors) return vectors
    const { status, pieces } = refusal
    // A refusal is final, but for 500: some servers answer it for a long text, others after an accident.
    const max = pieces === undefined ? retries : status === 500 && input.length === 1 ? 1 : 0
    if (attempt >= max || (status !== undefined && status < 500 && !isPassingStatus(status)))
      throw refusal
    const backoffMs = pieces === undefined ? 500 * 2 ** attempt * (0.75 + Math.random() / 4) : 100
    await delay(retryAfterMs ?? backoffMs, undefined, { signal })
  }
}

/** Waits for ever where a late try ends without vectors. */
const onlyVectors = (running: Promise<Try>): Promise<Try> =>
  running.then(
    result => (result.vectors ? result : new Promise<never>(() => {})),
    () => new Promise<never>(() => {}),
  )

const lateTry = (model: string, input: readonly string[], ms: number): Try => {
  const words = `did not answer within ${ms / 1000} s`
  return { refusal: new EmbeddingRefusal(model, words, undefined, piecesOfBatch(input)) }
}

/** A batch that takes too long may be too large for the machine of the model. */
const piecesOfBatch = (input: readonly string[]): number | undefined =>
  input.length > 1 ? 4 : undefined

type Try =
  | { vectors: Float32Array[]; refusal?: never; retryAfterMs?: never }
  | { vectors?: never; refusal: EmbeddingRefusal; retryAfterMs?: number | undefined }

async function tryOnce(
  { model, url, apiKey, keyHeader, fields }: EmbeddingsEndpoint,
  input: readonly string[],
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Try> {
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    // Each search makes this call, which is cheaper than the built-in fetch. Loaded with the first.
    const { request } = await import('undici')
    // The key is for this address only: redirects are not followed.
    const send = () =>
      request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...keyHeader },
        body: JSON.stringify({ ...fields, input }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      })
    const response = await timeProviderCall(model.split('/')[0]!, send, answer => answer.statusCode)
    const { statusCode: status, headers } = response
    const body = await response.body.text()
    if (status >= 200 && status < 300) {
      const vectors = vectorsOf(body, input.length)
      if (vectors) return { vectors }
      const said = body.length < bodyBytesMax ? providerWords(body, input, [apiKey]) : ''
      const fault = `did not answer with the vectors of its inputs${said && `: ${said}`}`
      return { refusal: new EmbeddingRefusal(model, fault, status, 2) }
    }
    const words = providerWords(body.slice(0, bodyBytesMax), input, [apiKey])
    const fault = `refused (status ${status})${words && `: ${words}`}`
    const pieces = isAboutInputs(status) ? 2 : isLate(status) ? piecesOfBatch(input) : undefined
    const retryAfterMs = retryAfterOf(String(headers['retry-after'] ?? '') || null)
    return { refusal: new EmbeddingRefusal(model, fault, status, pieces), retryAfterMs }
  } catch (error) {
    signal?.throwIfAborted()
    if (timeout.aborted) return lateTry(model, input, timeoutMs)
    const fault = `did not answer: ${reasonOf(error as Error)}`
    return { refusal: new EmbeddingRefusal(model, fault, undefined) }
  }
}

/** The code of a failed connection, such as ECONNREFUSED. */
function reasonOf(error: Error): string {
  const { code, message } = (error.cause ?? error) as { code?: string; message: string }
  return code ?? message.slice(0, 100)
}

/** Seconds or a date; waits of more than a minute are the caller's. */
function retryAfterOf(header: string | null): number | undefined {
  if (!header) return undefined
  const ms = /^\d+(?:\.\d+)?$/.test(header)
    ? Number(header) * 1000
    : Date.parse(header) - Date.now()
  return ms >= 0 && ms <= 60_000 ? ms : undefined
}

/**
 * Reads the vectors of an answer; undefined unless it has one for each input, all of the same length. A vector is a list
 * of numbers, or little-endian 32-bit floats in base64; an answer without `index` is in order. A proxy may answer 200
 * with a page of its own.
 */
function vectorsOf(body: string, inputs: number): Float32Array[] | undefined {
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    return undefined
  }
  const { data } = (answer ?? {}) as { data?: unknown }
  if (!Array.isArray(data) || data.length !== inputs) return undefined
  const rows = (data as ({ index?: unknown; embedding?: unknown } | null)[])
    .map((row, at) => ({
      at: typeof row?.index === 'number' ? row.index : at,
      vector: vectorOf(row?.embedding),
    }))
    .toSorted((one, other) => one.at - other.at)
  const vectors = rows.flatMap(({ vector }) => (vector ? [vector] : []))
  const isWhole = vectors.length === inputs && new Set(vectors.map(({ length }) => length)).size < 2
  return isWhole ? vectors : undefined
}

function vectorOf(embedding: unknown): Float32Array | undefined {
  const vector = typeof embedding === 'string' ? floatsOf(embedding) : numbersOf(embedding)
  return vector.length > 0 && vector.every(Number.isFinite) ? vector : undefined
}

function floatsOf(base64: string): Float32Array {
  const { buffer, byteOffset, length } = Buffer.from(base64, 'base64')
  return length % 4 === 0
    ? new Float32Array(buffer.slice(byteOffset, byteOffset + length))
    : new Float32Array()
}

const numbersOf = (value: unknown): Float32Array =>
  Array.isArray(value) && value.every(part => typeof part === 'number')
    ? Float32Array.from(value)
    : new Float32Array()

import { setTimeout as delay } from 'node:timers/promises'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { timedFetch } from '#shared/core/timed-fetch.ts'
import { isPassingStatus, ModelRefusal } from '#shared/models/model-refusal.ts'
import { providerWords } from '#shared/models/provider-words.ts'

/** The embeddings endpoint of one model. */
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
  /** Of one try. */
  timeoutMs: number
  /** Further tries after a rate limit, an overload, or no answer. */
  retries: number
  /**
   * A try that is late is not ended before this time: a server that is loading its model gives up when its client
   * leaves (Ollama: "client connection closed before server finished loading, aborting load"). Its answer counts as
   * long as a later try is waited for.
   */
  leaveMs?: number
  /** Ends the call. */
  signal?: AbortSignal | undefined
}

/** A refusal of an embedding model, or its silence. */
export class EmbeddingRefusal extends ModelRefusal {
  /** Into how many parts to cut what was refused; undefined where smaller parts would be refused too. */
  readonly parts: number | undefined

  /** @param words what it has done, after its name */
  constructor(model: string, words: string, status: number | undefined, parts?: number) {
    const message = `The embedding model ${model} ${words}`
    super('upstream', message, hints[status ?? 0] ?? usualHint, { model, status })
    this.parts = parts
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

/** About the caller, the address or the moment, and not about what was sent. */
const isAboutInputs = (status: number): boolean =>
  status <= 500 && ![401, 402, 403, 404, 405, 407, 408, 409, 425, 429].includes(status)

/** A gateway that has waited too long for a batch would wait for it again. */
const isLate = (status: number): boolean => status === 504 || status === 524

const bodyBytesMax = 64_000
const retryAfterMaxMs = 60_000

/**
 * Asks for the vectors of the inputs, in their order and as the provider made them. Rate limits, overloads
 * and lost connections are tried again, after `Retry-After` or 0.5, 1, 2, … seconds.
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
        return lateTry(endpoint, input, timeoutMs)
      },
    )
    if (vectors) return vectors
    const { status, parts } = refusal
    // A refusal is final; a server that answers 500 for a text too long may also have had an accident.
    const max = parts === undefined ? retries : status === 500 && input.length === 1 ? 1 : 0
    if (attempt >= max || (status !== undefined && status < 500 && !isPassingStatus(status)))
      throw refusal
    const backoffMs = parts === undefined ? 500 * 2 ** attempt * (0.75 + Math.random() / 4) : 100
    await delay(retryAfterMs ?? backoffMs, undefined, { signal })
  }
}

/** A late try that ends without vectors decides nothing. */
const onlyVectors = (running: Promise<Try>): Promise<Try> =>
  running.then(
    result => (result.vectors ? result : new Promise<never>(() => {})),
    () => new Promise<never>(() => {}),
  )

/** A batch that takes too long may be too large for the machine of the model. */
const lateTry = (
  { model }: Pick<EmbeddingsEndpoint, 'model'>,
  input: readonly string[],
  ms: number,
): Try => ({
  refusal: new EmbeddingRefusal(
    model,
    `did not answer within ${ms / 1000} s`,
    undefined,
    partsOfBatch(input, 4),
  ),
})

const partsOfBatch = (input: readonly string[], parts: number): number | undefined =>
  input.length > 1 ? parts : undefined

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
    const response = await timedFetch(model.split('/')[0]!)(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...keyHeader },
      // The key is for this address only: redirects are not followed.
      redirect: 'error',
      body: JSON.stringify({ ...fields, input }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    const { status, ok } = response
    const body = await response.text()
    if (ok) {
      const vectors = vectorsOf(body, input.length)
      if (vectors) return { vectors }
      const fault = 'did not answer with the vectors of its inputs'
      return { refusal: new EmbeddingRefusal(model, fault, status, 2) }
    }
    const words = providerWords(body.slice(0, bodyBytesMax), input, [apiKey])
    const fault = `refused (status ${status})${words && `: ${words}`}`
    const parts = isAboutInputs(status) ? 2 : isLate(status) ? partsOfBatch(input, 4) : undefined
    const retryAfterMs = retryAfterOf(response.headers.get('retry-after'))
    return { refusal: new EmbeddingRefusal(model, fault, status, parts), retryAfterMs }
  } catch (error) {
    signal?.throwIfAborted()
    if (timeout.aborted) return lateTry({ model }, input, timeoutMs)
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
  return ms >= 0 && ms <= retryAfterMaxMs ? ms : undefined
}

/**
 * The vectors of an answer; undefined where it has not one for each input, all of the same length. A vector
 * is a list of numbers, or little-endian 32-bit floats in base64; an answer without `index` is in order.
 * A proxy in between may answer 200 with a page of its own: any JSON, or none.
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
  const isWhole = vectors.length === inputs && vectors.every(isOfLength(vectors[0]?.length))
  return isWhole ? vectors : undefined
}

const isOfLength =
  (length: number | undefined) =>
  (vector: Float32Array): boolean =>
    vector.length === length

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

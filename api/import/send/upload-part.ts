import { VaultError, vaultClient, type VaultClient } from '#api/client/client.ts'
import type { ImportVaultAnswer, UploadAnswer } from '#api/contract/generated/types.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Counts of the lines of a part; line numbers are those within the part. */
export type PartResult = {
  stored: number
  replaced: number
  skipped: number
  failed: number
  errors: { line: number; error: string }[]
}

/** The vault that parts are sent to, and how. */
export type PartTarget = {
  client: Pick<VaultClient, 'call'>
  kind: 'upload' | 'import'
  /** Undefined: the core vault. */
  session: string | undefined
  embeddings?: string | undefined
  onConflict: 'skip' | 'replace'
}

type Part = { body: Uint8Array<ArrayBuffer>; lineNumbers: readonly number[] }

/** How something is sent that may need several attempts. */
export type Delivery = {
  /** Called before a wait for another attempt. */
  onRetry(why: string, seconds: number): void
  /** Ends the waiting. */
  signal: AbortSignal | undefined
}

type PartUpload = Delivery & {
  /** The same for each attempt of this part, so the service stores it once. */
  idempotencyKey: string
  /** Called with the share of the part that is done, 0 to 1. */
  onProgress(share: number): void
  /** Called when the work failed or was cancelled: the same key would be answered with it for a day. */
  onWorkLost(): void
}

const attemptsMax = 8
export const pollIntervalMs = 250
const requestTimeoutMs = 150_000

/** A client that compresses the lines it sends. */
export const uploadClient = (baseUrl: string, key: string, user?: string): VaultClient =>
  vaultClient(baseUrl, key, { fetch: sendCompressed, ...(user !== undefined && { user }) })

const sendCompressed: typeof fetch = async (url, request) => {
  if (!(request?.body instanceof Uint8Array)) return fetch(url, request)
  const body = new Blob([request.body as Uint8Array<ArrayBuffer>])
  const gzipped = body.stream().pipeThrough(new CompressionStream('gzip'))
  const headers = { ...(request.headers as Record<string, string>), 'content-encoding': 'gzip' }
  return fetch(url, { ...request, headers, body: await new Response(gzipped).arrayBuffer() })
}

/**
 * Sends a part and waits until it is stored. Idempotent by `delivery.idempotencyKey`.
 *
 * @throws Refusal with the error of the service when it refuses, or does not answer in eight attempts.
 */
export async function uploadPart(
  { client, kind, session, embeddings, onConflict }: PartTarget,
  { body, lineNumbers }: Part,
  delivery: PartUpload,
): Promise<PartResult> {
  const headers = {
    'idempotency-key': delivery.idempotencyKey,
    prefer: 'respond-async',
    ...(embeddings !== undefined && { 'x-embedding-model': embeddings }),
  }
  // The client sends bytes as they are, and names texts alone in its types.
  const lines = body as unknown as string
  const inSession = session !== undefined && { 'x-session-id': session }
  try {
    const id = await retried(delivery, async signal => {
      const accepted =
        kind === 'upload'
          ? await client.call(
              'POST /v1/memory/upload',
              { headers: { ...headers, ...inSession }, body: lines },
              { signal },
            )
          : await client.call(
              'POST /v1/memory/import',
              { query: { on_conflict: onConflict }, headers, body: lines },
              { signal },
            )
      return accepted.operation_id!
    })
    for (;;) {
      const { state, progress, outcome } = await retried(delivery, signal =>
        client.call('GET /v1/operations/:id', { params: { id } }, { signal }),
      )
      delivery.onProgress(progress.total > 0 ? progress.done / progress.total : 0)
      if (state === 'done' && outcome) return toPartResult(outcome.body as Answer)
      if (isFailed(state)) {
        delivery.onWorkLost()
        throw new Refusal('upstream', `Operation ${id} was ${state}`)
      }
      await wait(pollIntervalMs, delivery.signal)
    }
  } catch (error) {
    // None of its lines can be stored.
    const errors = error instanceof Refusal && (error.cause as Partial<VaultError>)?.errors
    if (!errors) throw error
    return { stored: 0, replaced: 0, skipped: 0, failed: lineNumbers.length, errors }
  }
}

/** Whether an operation has ended without storing all. */
export const isFailed = (state: string): boolean => state === 'failed' || state === 'cancelled'

type Answer = UploadAnswer | ImportVaultAnswer

function toPartResult(answer: Answer): PartResult {
  const { errors = [] } = answer
  if ('stats' in answer) {
    const { stored, skipped, failed } = answer.stats
    return { stored, replaced: 0, skipped, failed, errors }
  }
  const { imported, replaced, skipped, failed } = answer
  return { stored: imported, replaced, skipped, failed, errors }
}

/** Statuses after which the same request may succeed. */
const retryableStatuses = new Set([408, 409, 429, 500, 502, 503, 504])

/** @throws Refusal whose cause is that of the last attempt */
export async function retried<Value>(
  { onRetry, signal }: Delivery,
  send: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    try {
      const timeout = AbortSignal.timeout(requestTimeoutMs)
      return await send(signal ? AbortSignal.any([timeout, signal]) : timeout)
    } catch (error) {
      if (signal?.aborted) throw stopped()
      const isRetried = !(error instanceof VaultError) || retryableStatuses.has(error.status)
      const refusal = toRefusal(error)
      if (!isRetried || attempt === attemptsMax) throw refusal
      const seconds = (error as Partial<VaultError>).retryAfter ?? Math.min(30, 2 ** (attempt - 1))
      onRetry(refusal.message, seconds)
      await wait(seconds * 1_000, signal)
    }
  }
}

const stopped = (): Refusal => new Refusal('unavailable', 'Stopped')

function toRefusal(error: unknown): Refusal {
  if (!(error instanceof VaultError)) {
    const { cause, message } = error as Error
    const why = (cause instanceof Error && cause.message) || message
    return new Refusal('unavailable', `No answer: ${why}`, undefined, error)
  }
  const { status, detail, hint } = error
  return new Refusal('upstream', `${status}: ${detail || 'refused'}`, hint, error)
}

/** @throws Refusal when it is stopped meanwhile */
export function wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onStop = (): void => {
      clearTimeout(timer)
      reject(stopped())
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onStop)
      resolve()
    }, milliseconds)
    if (signal?.aborted) onStop()
    signal?.addEventListener('abort', onStop, { once: true })
  })
}

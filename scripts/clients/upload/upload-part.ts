import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Endpoints, ErrorBody } from '#api/contract/generated/types.ts'
import { credentialHeaders, networkFault } from '#scripts/service-connection.ts'
import type { UploadOptions } from '#scripts/clients/upload/options.ts'
import { Refusal } from '#shared/core/errors.ts'

type UploadAnswer = Endpoints['POST /v1/memory/upload']['answers'][200]
type ImportAnswer = Endpoints['POST /v1/memory/import']['answers'][200]
type OperationAnswer = Endpoints['GET /v1/operations/:id']['answers'][200]

/** Counts of the lines of a part; line numbers are those within the part. */
export type PartResult = {
  stored: number
  replaced: number
  skipped: number
  failed: number
  errors: { line: number; error: string }[]
}

/** The vault that parts are sent to, and how. */
export type PartTarget = Pick<
  UploadOptions,
  'baseUrl' | 'key' | 'user' | 'kind' | 'session' | 'embeddings' | 'onConflict'
>

export type PartUpload = {
  /** The same for each attempt of this part, so the service stores it once. */
  idempotencyKey: string
  /** Called with the share of the part that is done, 0 to 1. */
  onProgress(share: number): void
  /** Called before a wait for another attempt. */
  onRetry(why: string, seconds: number): void
  /** Called when the work failed or was cancelled: the same key would be answered with it for a day. */
  onWorkLost(): void
}

const attemptsMax = 8
const pollIntervalMs = 250
const requestTimeoutMs = 150_000

/**
 * Sends a part and waits until it is stored. Idempotent by `delivery.idempotencyKey`.
 *
 * @throws Refusal with the error of the service when it refuses, or does not answer in eight attempts.
 */
export async function uploadPart(
  options: PartTarget,
  body: Buffer,
  delivery: PartUpload,
): Promise<PartResult> {
  const query = options.kind === 'import' ? `?on_conflict=${options.onConflict}` : ''
  const gzipped = await promisify(gzip)(body, { level: 1 })
  const accepted = await callWithRetry(options, delivery, `/v1/memory/${options.kind}${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
      'idempotency-key': delivery.idempotencyKey,
      prefer: 'respond-async',
      ...(options.session !== undefined && { 'x-session-id': encodeHeader(options.session) }),
      ...(options.embeddings !== undefined && {
        'x-embedding-model': encodeHeader(options.embeddings),
      }),
    },
    body: gzipped,
  })
  const { operation_id, errors } = accepted as { operation_id: string } & Partial<ErrorBody>
  if (errors) return { stored: 0, replaced: 0, skipped: 0, failed: countLines(body), errors }
  for (;;) {
    const answer = await callWithRetry(options, delivery, `/v1/operations/${operation_id}`, {})
    const { state, progress, outcome } = answer as OperationAnswer
    delivery.onProgress(progress.total > 0 ? progress.done / progress.total : 0)
    if (state === 'done' && outcome)
      return toPartResult(outcome.body as UploadAnswer | ImportAnswer)
    if (state === 'failed' || state === 'cancelled') {
      delivery.onWorkLost()
      throw new Refusal('upstream', `Operation ${operation_id} was ${state}`)
    }
    await delay(pollIntervalMs)
  }
}

function toPartResult(answer: UploadAnswer | ImportAnswer): PartResult {
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

async function callWithRetry(
  target: PartTarget,
  { onRetry }: PartUpload,
  path: string,
  { headers, ...request }: RequestInit,
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    const answer = await sendRequest(`${target.baseUrl}${path}`, {
      ...request,
      headers: { ...(headers as Record<string, string>), ...credentialHeaders(target) },
    })
    if (answer.status < 300 || isFaultyFile(answer)) return answer.body
    const refusal = toRefusal(answer)
    if (!retryableStatuses.has(answer.status) || attempt === attemptsMax) throw refusal
    const seconds = answer.retryAfter ?? Math.min(30, 2 ** (attempt - 1))
    onRetry(refusal.message, seconds)
    await delay(seconds * 1_000)
  }
}

/** Returns whether a part was refused because none of its lines can be stored. */
const isFaultyFile = ({ status, body }: HttpAnswer): boolean =>
  status === 400 && (body as Partial<ErrorBody>).errors !== undefined

/** Counts the lines of a part without blank ones. */
const countLines = (body: Buffer): number =>
  body
    .toString()
    .split('\n')
    .filter(line => line.trim() !== '').length

type HttpAnswer = { status: number; body: unknown; retryAfter: number | undefined }

/** Sends a request; a network error is returned as status 503. */
async function sendRequest(url: string, request: RequestInit): Promise<HttpAnswer> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(requestTimeoutMs) })
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    const text = await response.text()
    return {
      status: response.status,
      body: parseJsonOrEmpty(text),
      retryAfter: retryAfter >= 0 ? retryAfter : undefined,
    }
  } catch (error) {
    return {
      status: 503,
      body: { error: `No answer: ${networkFault(error)}` },
      retryAfter: undefined,
    }
  }
}

function parseJsonOrEmpty(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

function toRefusal({ status, body }: HttpAnswer): Refusal {
  const { error = 'refused', hint } = body as Partial<ErrorBody>
  return new Refusal('upstream', `${status}: ${error}`, hint)
}

/** Encodes the UTF-8 bytes of a text as Latin-1 characters, for a header value. */
const encodeHeader = (text: string): string => Buffer.from(text).toString('latin1')

import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Endpoints, ErrorBody } from '#api/contract/types.ts'
import type { Options } from '#scripts/upload/options.ts'
import { Refusal } from '#shared/core/errors.ts'

type UploadAnswer = Endpoints['POST /v1/memory/upload']['answers'][200]
type ImportAnswer = Endpoints['POST /v1/memory/import']['answers'][200]
type OperationAnswer = Endpoints['GET /v1/operations/:id']['answers'][200]

/** What became of the lines of a part; lines are numbered within it. */
export type Delivered = {
  stored: number
  replaced: number
  skipped: number
  failed: number
  errors: { line: number; error: string }[]
}

export type Delivery = {
  /** The same each time this part is sent: the service does it once. */
  idempotencyKey: string
  /** Hears how much of the part is done, 0 to 1. */
  progress(share: number): void
  /** Hears that the service must be waited for. */
  waiting(why: string, seconds: number): void
}

const tries = 8
const lookMs = 250
const patienceMs = 150_000

/**
 * Sends a part and waits until it is stored. Sent again after anything it is done once.
 *
 * @throws Refusal with the service's words when it says no, or does not answer after eight tries.
 */
export async function deliver(
  options: Options,
  body: Buffer,
  delivery: Delivery,
): Promise<Delivered> {
  const query = options.kind === 'import' ? `?on_conflict=${options.onConflict}` : ''
  const packed = await promisify(gzip)(body, { level: 1 })
  const accepted = await call(options, delivery, `/v1/memory/${options.kind}${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
      'idempotency-key': delivery.idempotencyKey,
      prefer: 'respond-async',
      ...(options.session !== undefined && { 'x-session-id': headerOf(options.session) }),
      ...(options.embeddings !== undefined && {
        'x-embedding-model': headerOf(options.embeddings),
      }),
    },
    body: packed,
  })
  const { operation_id } = accepted as { operation_id: string }
  for (;;) {
    const answer = await call(options, delivery, `/v1/operations/${operation_id}`, {})
    const { state, progress, outcome } = answer as OperationAnswer
    delivery.progress(progress.total > 0 ? progress.done / progress.total : 0)
    if (state === 'done' && outcome) return deliveredOf(outcome.body as UploadAnswer | ImportAnswer)
    if (state === 'failed' || state === 'cancelled') {
      throw new Refusal('upstream', `Operation ${operation_id} was ${state}`)
    }
    await delay(lookMs)
  }
}

function deliveredOf(answer: UploadAnswer | ImportAnswer): Delivered {
  const { errors = [] } = answer
  if ('stats' in answer) {
    const { stored, skipped, failed } = answer.stats
    return { stored, replaced: 0, skipped, failed, errors }
  }
  const { imported, replaced, skipped, failed } = answer
  return { stored: imported, replaced, skipped, failed, errors }
}

/** Statuses after which the same request may go through. */
const passing = new Set([408, 409, 429, 500, 502, 503, 504])

async function call(
  { baseUrl, key }: Options,
  { waiting }: Delivery,
  path: string,
  { headers, ...request }: RequestInit,
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask(`${baseUrl}${path}`, {
      ...request,
      headers: { ...(headers as Record<string, string>), authorization: `Bearer ${key}` },
    })
    if (answer.status < 300) return answer.body
    const words = refusalOf(answer)
    if (!passing.has(answer.status) || attempt === tries) throw words
    const seconds = answer.retryAfter ?? Math.min(30, 2 ** (attempt - 1))
    waiting(words.message, seconds)
    await delay(seconds * 1_000)
  }
}

type Answer = { status: number; body: unknown; retryAfter: number | undefined }

/** A service that cannot be reached answers like one that is not available. */
async function ask(url: string, request: RequestInit): Promise<Answer> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(patienceMs) })
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    const text = await response.text()
    return {
      status: response.status,
      body: parsed(text),
      retryAfter: retryAfter >= 0 ? retryAfter : undefined,
    }
  } catch (error) {
    const { cause, message } = error as Error
    const why = cause instanceof Error && cause.message ? cause.message : message
    return { status: 503, body: { error: `No answer: ${why}` }, retryAfter: undefined }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

function refusalOf({ status, body }: Answer): Refusal {
  const { error = 'refused', hint } = body as Partial<ErrorBody>
  return new Refusal('upstream', `${status}: ${error}`, hint)
}

/** Header bytes are the UTF-8 of the text, each as one Latin-1 character. */
const headerOf = (text: string): string => Buffer.from(text).toString('latin1')

import { VaultError, type EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { latin1 } from '#api/console/app/vault/export.ts'
import { pollOperation } from '#api/console/app/vault/poll-operation.ts'
import { splitIntoChunks } from '#api/console/app/vault/file-chunks.ts'

export type UploadKind = 'upload' | 'import'

/** Progress of an upload, and the outcome of its lines. */
export type UploadProgress = {
  /** From 0 to 1. */
  fraction: number
  lines: number
  stored: number
  skipped: number
  failed: number
  /** The first errors, by line of the file. */
  errors: { line: number; error: string }[]
  isStopped: boolean
}

type UploadOptions = {
  kind: UploadKind
  session: string
  onProgress: (delivery: UploadProgress) => void
  /** Stops after the current chunk. */
  signal: AbortSignal
}

type ChunkResult = Pick<UploadProgress, 'stored' | 'skipped' | 'failed' | 'errors'>
type UploadResult = Extract<EndpointResponse<'POST /v1/memory/upload'>, { stats: unknown }>
type ImportResult = Extract<EndpointResponse<'POST /v1/memory/import'>, { imported: unknown }>

const errorsMax = 20

/**
 * Uploads a file in chunks. Each chunk is an operation of its own: it stays stored when a later one fails,
 * and uploading the file again adds what is missing.
 */
export async function uploadInChunks(file: File, options: UploadOptions): Promise<UploadProgress> {
  const { onProgress, signal } = options
  let progress: UploadProgress = { ...emptyResult, fraction: 0, lines: 0, isStopped: false }
  onProgress(progress)
  for await (const { body, lines, bytes } of splitIntoChunks(file)) {
    if (signal.aborted) return { ...progress, isStopped: true }
    const previous = progress
    const outcome = await sendChunk(body, options, fraction =>
      onProgress({ ...previous, fraction: previous.fraction + (fraction * bytes) / file.size }),
    ).catch((error: unknown) => faultyChunk(error, lines))
    progress = {
      fraction: Math.min(1, previous.fraction + bytes / file.size),
      lines: previous.lines + lines,
      stored: previous.stored + outcome.stored,
      skipped: previous.skipped + outcome.skipped,
      failed: previous.failed + outcome.failed,
      errors: [
        ...previous.errors,
        ...outcome.errors.map(({ line, error }) => ({ line: previous.lines + line, error })),
      ].slice(0, errorsMax),
      isStopped: false,
    }
    onProgress(progress)
  }
  return progress
}

/** The result of a chunk of which no line can be stored; others may be good. @throws any other error. */
function faultyChunk(error: unknown, lines: number): ChunkResult {
  if (!(error instanceof VaultError) || !error.errors) throw error
  return { ...emptyResult, failed: lines, errors: error.errors }
}

const emptyResult: ChunkResult = { stored: 0, skipped: 0, failed: 0, errors: [] }

async function sendChunk(
  body: string,
  { kind, session }: UploadOptions,
  onShare: (share: number) => void,
): Promise<ChunkResult> {
  const answer =
    kind === 'upload'
      ? await call('POST /v1/memory/upload', {
          body,
          headers: { prefer: 'respond-async', ...(session && { 'x-session-id': latin1(session) }) },
        })
      : await call('POST /v1/memory/import', { body, headers: { prefer: 'respond-async' } })
  return toChunkResult(
    'operation_id' in answer && answer.status === 'processing'
      ? await pollOperation<UploadResult | ImportResult>(answer.operation_id, onShare)
      : answer,
  )
}

function toChunkResult(answer: UploadResult | ImportResult): ChunkResult {
  const errors = answer.errors ?? []
  if ('stats' in answer) return { ...answer.stats, errors }
  const { imported, replaced, skipped, failed } = answer
  return { stored: imported + replaced, skipped, failed, errors }
}

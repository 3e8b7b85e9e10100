import type { AnswerOf } from '#api/client/client.ts'
import { call, Told } from '#api/console/app/call.ts'
import { latin1 } from '#api/console/app/vault/export.ts'
import { partsOf } from '#api/console/app/vault/file-parts.ts'

export type Kind = 'upload' | 'import'

/** How far a file is, and what became of its lines. */
export type Delivery = {
  /** From 0 to 1. */
  share: number
  lines: number
  stored: number
  skipped: number
  failed: number
  /** The first ones, by line of the file. */
  errors: { line: number; error: string }[]
  stopped: boolean
}

type Options = {
  kind: Kind
  session: string
  onProgress: (delivery: Delivery) => void
  /** Ends it after the part that is under way. */
  stop: AbortSignal
}

type Outcome = Pick<Delivery, 'stored' | 'skipped' | 'failed' | 'errors'>
type Uploaded = Extract<AnswerOf<'POST /v1/memory/upload'>, { stats: unknown }>
type Imported = Extract<AnswerOf<'POST /v1/memory/import'>, { imported: unknown }>

const errorsMax = 20
const lookMs = 400

/**
 * Sends a file part by part. A part is work of its own, so what was sent stays when the rest fails, and
 * sending the file again adds what is missing.
 */
export async function deliver(file: File, options: Options): Promise<Delivery> {
  const { onProgress, stop } = options
  let delivery: Delivery = { ...nothing, share: 0, lines: 0, stopped: false }
  onProgress(delivery)
  for await (const { body, lines, bytes } of partsOf(file)) {
    if (stop.aborted) return { ...delivery, stopped: true }
    const before = delivery
    const outcome = await sent(body, options, share =>
      onProgress({ ...before, share: before.share + (share * bytes) / file.size }),
    )
    delivery = {
      share: Math.min(1, before.share + bytes / file.size),
      lines: before.lines + lines,
      stored: before.stored + outcome.stored,
      skipped: before.skipped + outcome.skipped,
      failed: before.failed + outcome.failed,
      errors: [
        ...before.errors,
        ...outcome.errors.map(({ line, error }) => ({ line: before.lines + line, error })),
      ].slice(0, errorsMax),
      stopped: false,
    }
    onProgress(delivery)
  }
  return delivery
}

const nothing: Outcome = { stored: 0, skipped: 0, failed: 0, errors: [] }

async function sent(
  body: string,
  { kind, session }: Options,
  onShare: (share: number) => void,
): Promise<Outcome> {
  const answer =
    kind === 'upload'
      ? await call('POST /v1/memory/upload', {
          body,
          headers: { prefer: 'respond-async', ...(session && { 'x-session-id': latin1(session) }) },
        })
      : await call('POST /v1/memory/import', { body, headers: { prefer: 'respond-async' } })
  return outcomeOf(
    'operation_id' in answer && answer.status === 'processing'
      ? await ended(answer.operation_id, onShare)
      : answer,
  )
}

/** Looks at an operation until it is over. */
async function ended(id: string, onShare: (share: number) => void): Promise<Uploaded | Imported> {
  for (;;) {
    const { state, progress, outcome } = await call('GET /v1/operations/:id', { params: { id } })
    onShare(progress.total > 0 ? progress.done / progress.total : 0)
    if (state === 'cancelled') throw new Told('The upload was cancelled')
    if (outcome && outcome.status < 300) return outcome.body as unknown as Uploaded | Imported
    if (outcome) throw new Told((outcome.body as { error?: string }).error ?? 'The upload failed')
    await new Promise(resolve => setTimeout(resolve, lookMs))
  }
}

function outcomeOf(answer: Uploaded | Imported): Outcome {
  const errors = answer.errors ?? []
  if ('stats' in answer) return { ...answer.stats, errors }
  const { imported, replaced, skipped, failed } = answer
  return { stored: imported + replaced, skipped, failed, errors }
}

import { Losses } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import { readDocument, type DocumentReading } from '#api/import/documents/read-document.ts'
import { documentEndings, sendDocument, type SentDocument } from '#api/import/send/send-document.ts'
import { uploadClient } from '#api/import/send/upload-part.ts'
import { listDocumentsAt } from '#scripts/clients/import/export-files.ts'
import type { ImportOptions } from '#scripts/clients/import/options.ts'
import { Refusal } from '#shared/core/errors.ts'

/** What became of a document, or would become of it. */
type Outcome = { name: string } & (Reading | { error: string; hint?: string | undefined })

type Reading = Partial<SentDocument> | { pieces: number; left_out: SentDocument['left_out'] }

/**
 * Sends the documents at a path to a vault, one by one. Their names are their paths, so that a later run replaces what has changed.
 *
 * @returns the exit code
 */
export async function importDocuments(options: ImportOptions): Promise<number> {
  const { path, baseUrl, key, user, session, embeddings, dryRun, json } = options
  const files = await listDocumentsAt(path)
  const known = files.length === 1 ? files : files.filter(({ name }) => documentEndings.test(name))
  const client = uploadClient(baseUrl, key, user)
  const delivery = {
    signal: undefined,
    onRetry: (why: string, seconds: number) =>
      void process.stderr.write(`${why}; again in ${seconds} s\n`),
  }
  const outcomes: Outcome[] = []
  for (const file of known) {
    const outcome = await attempt(file.name, async () => {
      const bytes = new Uint8Array(await (await file.blob!()).arrayBuffer())
      if (dryRun) return read(file, bytes)
      return sendDocument(client, { name: file.name, bytes, session, embeddings }, delivery)
    })
    outcomes.push(outcome)
    if (!json) process.stdout.write(describe(outcome))
  }
  const skipped = files.length - known.length
  if (json) process.stdout.write(`${JSON.stringify({ files: outcomes, skipped })}\n`)
  else if (skipped > 0) process.stdout.write(`left out, by their endings: ${skipped}\n`)
  return outcomes.some(outcome => 'error' in outcome) ? 1 : 0
}

async function attempt(name: string, act: () => Promise<Reading>): Promise<Outcome> {
  try {
    return { ...(await act()), name }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { name, error: error.message, hint: error.hint }
  }
}

/** Reads a document here, as the service would. */
async function read({ name }: ExportFile, bytes: Uint8Array<ArrayBuffer>) {
  const losses = new Losses()
  const reading: DocumentReading = { pages: new Set() }
  const pieces = await Array.fromAsync(
    readDocument({ name, bytes, mediaType: '' }, losses, reading),
  )
  return { kind: reading.kind, pieces: pieces.length, left_out: losses.list() }
}

function describe({ name, ...outcome }: Outcome): string {
  if ('error' in outcome)
    return `${name}: ${outcome.error}${outcome.hint ? ` (${outcome.hint})` : ''}\n`
  const counts =
    'pieces' in outcome
      ? [`${outcome.pieces} memories would be stored`]
      : [
          `${outcome.stored} stored`,
          outcome.skipped && `${outcome.skipped} already there`,
          outcome.replaced && `${outcome.replaced} of an earlier version removed`,
          outcome.failed && `${outcome.failed} refused`,
        ].filter(Boolean)
  const leftOut = (outcome.left_out ?? []).map(({ what, count }) => `left out: ${what}: ${count}`)
  return `${name}: ${[...counts, ...leftOut].join(', ')}\n`
}

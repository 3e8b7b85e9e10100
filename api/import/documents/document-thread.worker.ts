import { parentPort, workerData } from 'node:worker_threads'
import type { DocumentBytes } from '#api/import/documents/document.ts'
import { Pictures } from '#api/import/documents/pictures.ts'
import { readDocument, type DocumentReading } from '#api/import/documents/read-document.ts'
import { Losses } from '#api/import/draft.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The thread of `document-process.ts`: posts pieces, then how the reading ended. */
const losses = new Losses()
const reading: DocumentReading = { pages: new Set() }
const { takesPictures, ...document } = workerData as DocumentBytes & { takesPictures?: boolean }
const pictures = takesPictures ? new Pictures() : undefined
let pieces = 0
try {
  for await (const piece of readDocument({ ...document, pictures }, losses, reading)) {
    pieces++
    post({ piece })
  }
  post({ end: { kind: reading.kind, pages: reading.pages.size, pieces, left_out: losses.list() } })
} catch (error) {
  const { reason, message, hint } =
    error instanceof Refusal
      ? error
      : {
          reason: 'invalid',
          message: `The file cannot be read: ${(error as Error).message}`,
          hint: undefined,
        }
  post({ refusal: { reason, message, hint } })
}

function post(message: object): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort!.postMessage(message)
}

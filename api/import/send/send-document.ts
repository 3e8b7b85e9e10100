import type { VaultClient } from '#api/client/client.ts'
import type { StoreFileAnswer, UploadAnswer } from '#api/contract/generated/types.ts'
import {
  isFailed,
  pollIntervalMs,
  retried,
  wait,
  type Delivery,
} from '#api/import/send/upload-part.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A document for a vault. */
export type DocumentToSend = {
  /** Its path or name, with its ending. */
  name: string
  bytes: Uint8Array<ArrayBuffer>
  /** Undefined: the core vault. */
  session?: string | undefined
  embeddings?: string | undefined
}

/** What became of a document. */
export type SentDocument = Pick<
  StoreFileAnswer,
  'file_id' | 'name' | 'kind' | 'pages' | 'left_out' | 'replaced' | 'stored' | 'skipped' | 'failed'
>

/** Endings of documents that the service reads. */
export const documentEndings = /\.(?:pdf|docx|pptx|xlsx|html?|xhtml|md|markdown|eml|csv|tsv|txt)$/i

/**
 * Sends a document and waits until its memories are stored. Sent again it adds nothing.
 *
 * @throws Refusal with the error of the service when it refuses, or does not answer in eight attempts
 */
export async function sendDocument(
  client: Pick<VaultClient, 'call'>,
  { name, bytes, session, embeddings }: DocumentToSend,
  delivery: Delivery,
): Promise<SentDocument> {
  const headers = {
    'content-type': 'application/octet-stream',
    ...(session !== undefined && { 'x-session-id': session }),
    ...(embeddings !== undefined && { 'x-embedding-model': embeddings }),
  }
  const answer = await retried(delivery, signal =>
    // The client sends bytes as they are, and names texts alone in its types.
    client.call(
      'POST /v1/memory/files',
      { query: { name }, headers, body: bytes as never },
      { signal },
    ),
  )
  if (!('operation_id' in answer) || answer.status !== 'processing') return answer
  const id = answer.operation_id
  for (;;) {
    const { state, outcome } = await retried(delivery, signal =>
      client.call('GET /v1/operations/:id', { params: { id } }, { signal }),
    )
    if (state === 'done' && outcome)
      return { replaced: 0, ...answer, ...(outcome.body as UploadAnswer).stats }
    if (isFailed(state)) throw new Refusal('upstream', `Operation ${id} was ${state}`)
    await wait(pollIntervalMs, delivery.signal)
  }
}

import { WorkerThread } from '#shared/core/thread.ts'
import type { ContentReading } from '#shared/domain/turn/conversation.ts'

/** Bytes of a content from which on it is read in the thread: fewer take some 2 ms. */
export const longContentBytesMin = 1024 * 1024

export type LongContent = { role: string; bytes: Uint8Array; isVerbatim: boolean }

/** What the content of a message says, and how the texts of its parts begin. */
export type LongContentReading = ContentReading & {
  beginnings: string[]
  /** The content as it was sent, where that is stored. */
  sent?: string
}

/** Characters of the beginning of a text: prompts of asides are known by fewer. */
export const beginningCharacters = 8_192

/**
 * Reads the JSON of a long content in a thread of its own: marks of programs can begin anywhere, so all of it is read,
 * and at once 18 MB hold the event loop for 60 ms, of code blocks or of echoes of our block for 400.
 *
 * @param json of the content; copied
 */
export function readLongContent(
  role: string,
  json: Uint8Array,
  isVerbatim: boolean,
): Promise<LongContentReading> {
  const bytes = new Uint8Array(json)
  return thread.ask({ role, bytes, isVerbatim }, { transferred: [bytes.buffer] })
}

const thread = new WorkerThread<LongContent, LongContentReading>(
  'contents',
  new URL('long-content.worker.ts', import.meta.url),
)

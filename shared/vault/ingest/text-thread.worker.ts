import { serveThread } from '#shared/core/thread.ts'
import { redactOrSkipTurns } from '#shared/privacy/apply-redaction.ts'
import { chunkMessages } from '#shared/vault/base/text-chunks.ts'
import type { ThreadResult, ThreadTask } from '#shared/vault/ingest/text-thread.ts'

/** The thread of `text-thread.ts`. */
serveThread(async ({ redaction, ...task }: ThreadTask, signal): Promise<ThreadResult> => {
  if ('userTurns' in task) return { userTurns: redactOrSkipTurns(redaction, task.userTurns) }
  const chunked = await chunkMessages(redaction, task.messages, signal)
  // Unchanged messages need not be copied back.
  return { turns: chunked.turns, ...(redaction && { messages: chunked.messages }) }
})

import { WorkerThread } from '#shared/core/thread.ts'
import { extractText, type Message, type Turn } from '#shared/domain/message-content.ts'
import { redactOrSkipTurns, type RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import {
  chunkMessages,
  type ChunkedMessages,
  type ChunkedTurn,
} from '#shared/vault/base/text-chunks.ts'

/** Messages to redact and to cut, or turns to redact. */
export type ThreadTask = { redaction: RedactionPolicy | null } & (
  | { messages: readonly Message[] }
  | { userTurns: readonly Turn[] }
)

export type ThreadResult = {
  turns?: ChunkedTurn[]
  userTurns?: Turn[]
  messages?: readonly Message[]
}

/** Characters that are redacted and cut in the main thread: some 10 ms. */
const inlineCharactersMax = 64 * 1024

/**
 * As `chunkMessages`; longer texts in a thread of their own, one request at a time: 20 MiB take a second and
 * more. The thread holds its own table of tokens, 60 MB.
 *
 * @param signal ends the work of the thread
 * @throws the reason of `signal`
 */
export async function chunkMessagesInThread(
  redaction: RedactionPolicy | null,
  messages: readonly Message[],
  signal?: AbortSignal,
): Promise<ChunkedMessages> {
  const texts = messages.map(message => ({ ...message, content: extractText(message.content) }))
  const characters = texts.reduce((sum, { content }) => sum + content.length, 0)
  if (characters <= inlineCharactersMax) return chunkMessages(redaction, messages)
  const answer = await thread.ask({ redaction, messages: texts }, { signal })
  return { messages: answer.messages ?? messages, turns: answer.turns! }
}

/** As `redactOrSkipTurns`; longer texts in the thread. */
export async function redactOrSkipTurnsInThread(
  redaction: RedactionPolicy | null,
  userTurns: readonly Turn[],
): Promise<readonly Turn[]> {
  if (!redaction) return userTurns
  const characters = userTurns.reduce((sum, { text }) => sum + text.length, 0)
  if (characters <= inlineCharactersMax) return redactOrSkipTurns(redaction, userTurns)
  return (await thread.ask({ redaction, userTurns })).userTurns!
}

const thread = new WorkerThread<ThreadTask, ThreadResult>(
  'texts',
  new URL('text-thread.worker.ts', import.meta.url),
)

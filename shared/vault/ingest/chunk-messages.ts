import type { Message, Turn } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { applyRedactionToMessages, type RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import { splitIntoChunks, type TextChunk } from '#shared/vault/base/text-chunks.ts'

/** A turn with its text in chunks. */
export type ChunkedTurn = Omit<Turn, 'text'> & { chunks: TextChunk[] }

export type ChunkedMessages = {
  /** As they may be stored. */
  messages: readonly Message[]
  turns: ChunkedTurn[]
}

/**
 * Redacts messages that were read and cuts their turns into chunks.
 *
 * @throws Refusal `invalid` when the policy blocks one.
 */
export async function chunkMessages(
  redaction: RedactionPolicy | null,
  messages: readonly Message[],
): Promise<ChunkedMessages> {
  const storable = applyRedactionToMessages(redaction, messages)
  const turns: ChunkedTurn[] = []
  for (const { text, ...turn } of toReadTurns(storable)) {
    const chunks = await splitIntoChunks(text)
    turns.push({ ...turn, chunks: chunks.filter(({ text }) => text.trim() !== '') })
  }
  return { messages: storable, turns }
}

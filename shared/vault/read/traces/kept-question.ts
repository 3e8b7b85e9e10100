import type { Message } from '#shared/domain/message-content.ts'
import { toReadTurns } from '#shared/domain/turn/conversation.ts'
import { redactOrSkipText, type RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import { questionMark } from '#shared/vault/base/trace-questions.postgres.ts'
import { chunkTokensMax, splitIntoChunks } from '#shared/vault/base/text-chunks.ts'

/** The words of a call that stores nothing, as they stand in its trace. */
export type KeptQuestion = {
  text: string
  /** The `questionMark` of each memory that `ingest` would make of it. */
  marks: string[]
}

const charactersMax = 8_000

/**
 * What is kept of a question: of a long text whole chunks of its first 8,000 characters, so that each of them is found
 * by the memory that `ingest` makes of it.
 *
 * @returns undefined for a message without words, one that is not to be stored, and one that the policy blocks.
 */
export async function keepQuestion(
  redaction: RedactionPolicy | null,
  { role, content, memory }: Message,
): Promise<KeptQuestion | undefined> {
  const [turn] = toReadTurns([{ role, content, ...(memory !== undefined && { memory }) }])
  if (!turn) return undefined
  const allowed = redactOrSkipText(redaction, turn.text.slice(0, charactersMax))
  const chunks = allowed === undefined ? [] : await chunksOf(allowed)
  // It may be cut inside a chunk.
  if (turn.text.length > charactersMax) chunks.pop()
  if (chunks.length === 0) return undefined
  const texts = chunks.map(({ text }) => text)
  return { text: texts.join(''), marks: texts.map(text => questionMark(contentHash(text))) }
}

/** A token has at least one byte: a short text is one chunk, and is not counted. */
const chunksOf = async (text: string): Promise<{ text: string }[]> =>
  Buffer.byteLength(text) <= chunkTokensMax ? [{ text }] : splitIntoChunks(text)

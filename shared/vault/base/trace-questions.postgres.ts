import type { Query } from '#shared/storage/postgres/connect.ts'

const markBytes = 16

/** Identifies the text of a memory in a trace, by its `contentHash`: a `bytea` in hex. */
export const questionMark = (hash: Uint8Array): string =>
  `\\x${Buffer.from(hash).toString('hex', 0, markBytes)}`

/**
 * Drops from the traces of a vault the questions that hold the text of a memory which is deleted or gets another text.
 *
 * @param hashes `contentHash` of each of the texts
 */
export async function forgetQuestions(
  query: Query,
  vault: string,
  hashes: readonly Uint8Array[],
): Promise<void> {
  if (hashes.length === 0) return
  await query(
    `update call_traces set question = null, question_marks = null
     where vault = $1 and question_marks && $2::bytea[]`,
    [vault, hashes.map(questionMark)],
    'call-traces.forget-questions',
  )
}

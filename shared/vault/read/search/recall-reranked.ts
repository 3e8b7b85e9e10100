import type { Caller } from '#shared/access/caller.ts'
import type { Config } from '#shared/core/config.ts'
import { recallSeconds } from '#shared/core/metrics.ts'
import { tellText } from '#shared/domain/context-block.ts'
import { rerankOrder } from '#shared/models/rerank.ts'
import { bestPassage } from '#shared/search/query/best-passage.ts'
import {
  recall,
  type RecalledMemory,
  type RecallQuestion,
} from '#shared/vault/read/search/recall.ts'

/** Memories that a reranker puts in order: enough to bring up what the ranking had too low. */
const candidatesMin = 40
const candidatesMax = 60

/**
 * As `recall`, in the order of the operator's reranker where there is one. It decides which of the memories that
 * match are the best: none is dropped for its sake, one of the very text that was asked stays first, and scores stay
 * sorted, since the memories take over each other's. Without its answer everything is as without a reranker.
 *
 * @throws what `recall` throws.
 */
export async function recallReranked(
  backend: Parameters<typeof recall>[0] & { config: Pick<Config, 'reranker'> },
  caller: Parameters<typeof recall>[1] & Pick<Caller, 'scope'>,
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const found = await recall(backend, caller, question)
  const { reranker } = backend.config
  // What only surrounds the question is not worth another wait.
  if (!reranker || question.undivided) return found
  const { limit } = question
  const mayHaveMore = found.length === limit && limit < candidatesMin
  const candidates = mayHaveMore
    ? await recall(backend, caller, {
        ...question,
        limit: candidatesMin,
        onMatchCount: undefined,
        onEmptyTime: undefined,
      })
    : found
  const fixed = candidates.filter(({ relevance }) => relevance === Infinity).length
  const open = candidates.slice(fixed, candidatesMax)
  if (open.length < 2) return found
  const texts = open.map(({ memory }) =>
    tellText({ ...memory, passage: bestPassage(memory.text, question.text) }),
  )
  const stopTimer = recallSeconds.startTimer({ stage: 'rerank' })
  const order = await rerankOrder(reranker, question.text, texts)
  stopTimer()
  if (!order) return found
  const reordered = order.map((from, at) => {
    const { score, relevance } = open[at]!
    return { ...open[from]!, score, relevance }
  })
  return [
    ...candidates.slice(0, fixed),
    ...reordered,
    ...candidates.slice(fixed + open.length),
  ].slice(0, limit)
}

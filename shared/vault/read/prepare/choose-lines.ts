import { countTokens } from '#shared/core/tokens.ts'
import { tellText, type ContextMemory } from '#shared/domain/context-block.ts'
import { asksList, questionKind } from '#shared/search/query/sentence-kinds.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { bestPassage } from '#shared/search/query/best-passage.ts'
import type { RecalledMemory } from '#shared/vault/read/search/recall.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { tuned } from '#shared/search/tuned.ts'

const { answerWords, answerSimilarity, restRelevance, wholeTokensMax } = tuned.lines
const { sameAnswerWords, sameAnswerRelevance, listShare } = tuned.lines

/**
 * Leaves out weak rows where the best memory plainly answers the only question: those that share a word with it
 * by chance, at less than a third of its relevance.
 *
 * @param found best first
 * @param questions the parts of the message
 */
export function leaveOutWeakRest<
  Row extends Pick<RecalledMemory, 'relevance' | 'signals' | 'evidence'>,
>(found: readonly Row[], questions: readonly Question[]): readonly Row[] {
  const [best] = found
  const [asked, ...others] = questions.filter(({ kind }) => kind !== 'name')
  if (!best || !asked || others.length > 0 || questionKind(asked.text)) return found
  const certain = Math.max(...found.map(({ evidence = -Infinity }) => evidence))
  const likely = certain >= tuned.evidence.certain ? found.filter(isLikely) : found
  const { words, similarity, question } = best.signals
  const isAnswer = words >= answerWords && similarity >= answerSimilarity && question === 0
  if (!isAnswer) return likely
  return likely.filter(({ relevance }) => relevance >= best.relevance * restRelevance)
}

const isLikely = ({ evidence = 0 }: { evidence?: number | undefined }): boolean =>
  evidence >= tuned.evidence.unlikely

/** Tokens of the times and the speaker of a line. */
const lineTokens = 24

/**
 * The lines of a block: the best memories whose lines fit into the tokens, long ones by the passage that best
 * fits the question, by shorter ones where a summary or an order is asked for and not all fit. The best one is always in it.
 *
 * @param found best first
 */
export function chooseLines(
  found: readonly RecalledMemory[],
  question: string,
  tokensMax: number,
): ContextMemory[] {
  const usual = fillLines(found, question, { tokensMax, share: 1 })
  const isShort = usual.length < found.length && asksList(question)
  return isShort ? fillLines(found, question, { tokensMax, share: listShare }) : usual
}

/** @param options.share of the usual length of a passage */
function fillLines(
  found: readonly RecalledMemory[],
  question: string,
  { tokensMax, share }: { tokensMax: number; share: number },
): ContextMemory[] {
  const chosen: ContextMemory[] = []
  const later = laterMemory(found)
  let remaining = tokensMax
  for (const { memory, supersededBy } of found) {
    if (remaining < lineTokens) break
    const passage =
      memory.tokens > wholeTokensMax * share ? bestPassage(memory.text, question, share) : undefined
    const tokens = lineTokens + told({ ...memory, passage })
    if (tokens > remaining && chosen.length > 0) continue
    remaining -= tokens
    chosen.push({
      ...memory,
      ...(passage && { passage }),
      ...(memory.id === later && { isLater: true }),
      ...(supersededBy !== undefined && { isEarlier: true }),
    })
  }
  return chosen
}

/** Tokens of the part of a memory that a block contains. */
const told = (memory: ContextMemory): number =>
  memory.passage ? Math.min(memory.tokens, countTokens(tellText(memory))) : memory.tokens

export const toldTokens = (lines: readonly ContextMemory[]): number =>
  lines.reduce((sum, line) => sum + told(line), 0)

const DAY_MS = 86_400_000

/** The last of statements that answer the same, days apart; undefined when only one answers. */
function laterMemory(found: readonly RecalledMemory[]): string | undefined {
  const [best] = found
  if (!best) return undefined
  const answers = found
    .filter(
      ({ memory, signals, relevance }) =>
        memory.role !== 'assistant' &&
        signals.question === 0 &&
        signals.words >= sameAnswerWords &&
        relevance >= best.relevance * sameAnswerRelevance,
    )
    .map(({ memory }) => memory)
    .sort((one, other) => one.at - other.at)
  const last = answers.at(-1)
  return last && last.at - answers[0]!.at >= DAY_MS ? last.id : undefined
}

/** The part of a memory in a block, in characters, and whether it is marked as later or earlier. */
export type RecalledLine = {
  id: string
  from?: number
  to?: number
  later?: boolean
  earlier?: boolean
}

/** Memories with the parts of them that a block contained. */
export function asTold(
  memories: readonly Memory[],
  lines: readonly RecalledLine[],
): ContextMemory[] {
  const toldLines = new Map(lines.map(line => [line.id, line]))
  return memories.map(memory => {
    const { from, to, later, earlier } = toldLines.get(memory.id) ?? {}
    const passage = to === undefined ? undefined : { from: from ?? 0, to }
    return { ...memory, passage, isLater: later, isEarlier: earlier }
  })
}

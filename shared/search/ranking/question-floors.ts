import type { Concepts } from '#shared/search/query/concepts.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { isImpersonalTask } from '#shared/search/query/task-words.ts'
import { isCommonWord } from '#shared/search/words/term-weights.ts'
import { speakerMarker } from '#shared/search/words/index-terms.ts'
import type { ReadonlyWordIndex } from '#shared/search/words/word-index.ts'

/** What a row is worth that fits a part of a message. */
export const kindWeights: Record<Question['kind'], number> = {
  asking: 1,
  whole: 0.9,
  statement: 0.6,
  name: 0.4,
}
/** Floor of a question. */
export const questionFloor = 1.1
/** Floor of a sentence beside one that asks: it must be about the row, not only near it. */
const besideQuestionFloor = 4
/** Floor of the sentences of a message that asks nothing. */
const statementFloor = 2.8
/** Floor of tasks such as "write a poem": most need nothing of what is remembered. */
const taskFloor = 3.5

/** Lowest strength of the best row, for a part of a message to be told of at all. */
export function floorOf(text: string, kind: Question['kind'], asks: boolean): number {
  if (kind === 'statement' && asks) return besideQuestionFloor
  if (kind !== 'name' && isImpersonalTask(text)) return taskFloor
  return kind === 'statement' ? statementFloor : questionFloor
}

/** Rows with a name that is rare: three, or a share of all. */
const rareNameRows = 3
const rareNameShare = 0.01

/** Whether a part has a name that few rows have. */
export function isRareName({ terms }: ParsedQuery, indexes: readonly ReadonlyWordIndex[]): boolean {
  const count = indexes.reduce((sum, index) => sum + index.count, 0)
  return terms.some(({ term }) => {
    if (term.endsWith('*') || isCommonWord(term)) return false
    const rows = indexes.reduce((sum, index) => sum + index.documentFrequency(term), 0)
    return rows > 0 && rows <= Math.max(rareNameRows, count * rareNameShare)
  })
}

/** Whether a question names nothing but times and people: "what happened in July". */
export const asksOnlyTimeOrSpeaker = ({
  parsedQuery,
  concepts,
}: {
  parsedQuery: ParsedQuery
  concepts: Concepts
}): boolean =>
  parsedQuery.nonTimeTerms.every(term => concepts.speakerMarkers.includes(speakerMarker + term))

import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import type { CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { compareFacts, type ComparisonInput } from '#shared/org/pipeline/compare-facts.ts'
import { currentTags } from '#shared/org/pipeline/batch-facts.ts'
import type { ComparisonAnswer } from '#shared/org/pipeline/judged-facts.ts'
import type { NearMemory } from '#shared/org/pipeline/nearest-shared.ts'

/**
 * Replaces each answer that would change a memory when the question also showed texts that readers of the
 * memory may not see: such a text could get into the new wording, for example as an instruction to the
 * model. These are asked again without those texts, those with the same readers in one call. A wording that
 * has all of its words from the fact and the memory itself is taken as it is.
 */
export async function recheckUpdates(
  backend: CompletionBackend,
  { facts, memories, near, ...about }: ComparisonInput,
  answers: readonly (readonly ComparisonAnswer[])[],
  signal: AbortSignal,
): Promise<ComparisonAnswer[][]> {
  const shown = [...memories, ...facts.map(fact => ({ tags: currentTags(about.policy, fact) }))]
  const revised = facts.map((_, index) => [...answers[index]!])
  const doubted = revised.flatMap((list, index) =>
    list.flatMap((answer, at) => {
      const changed = near[index]!.find(isNamedBy(answer))
      if (answer.action !== 'UPDATE' || !changed || isDecidedByPerson(changed)) return []
      const isPlain = hasOnlyWordsOf(answer.text, [facts[index]!.text, changed.text])
      return isPlain || shown.every(isReadableBy(changed)) ? [] : [{ index, at, changed }]
    }),
  )
  const byReaders = Map.groupBy(doubted, ({ changed }) => JSON.stringify(changed.tags.toSorted()))
  for (const group of byReaders.values()) {
    const isReadable = isReadableBy(group[0]!.changed)
    const indexes = [...new Set(group.map(({ index }) => index))]
    const open = indexes.map(index => near[index]!.filter(isReadable))
    const retryInput = {
      ...about,
      facts: indexes.map(index => facts[index]!),
      memories: [...new Set(open.flat())],
      near: open,
    }
    const retried = await compareFacts(backend, retryInput, signal)
    for (const { index, at, changed } of group) {
      const again = retried[indexes.indexOf(index)]!
      const confirmed = again.find(answer => answer.mem_id === changed.id)
      const other = again.find(({ action }) => action !== 'UPDATE')
      revised[index]![at] = confirmed ?? other ?? { action: 'ADD', mem_id: null, text: '' }
    }
  }
  return revised
}

const hasOnlyWordsOf = (text: string, sources: readonly string[]): boolean => {
  const known = new Set(sources.flatMap(wordsOf))
  return wordsOf(text).every(word => known.has(word))
}

const wordsOf = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []

/** Whether those who may read a memory may read another text. */
const isReadableBy = ({ tags }: NearMemory) => {
  const readers = visibilityOf({ wildcard: false, allowedTags: [...tags] })
  return (text: { tags: readonly string[] }): boolean => isPermitted(readers, text.tags)
}

/** A person has reviewed or worded it. */
export const isDecidedByPerson = ({ reviewed, byHand = false }: NearMemory): boolean =>
  reviewed || byHand

export const isNamedBy =
  (answer: ComparisonAnswer | undefined) =>
  ({ id }: NearMemory): boolean =>
    id === answer?.mem_id

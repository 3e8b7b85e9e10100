import type { BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import { type NearMemory, sharedWords, wordsOf } from '#shared/org/pipeline/nearest-shared.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'

/** Of one fact; the memory is one that was shown, or null. */
export type ComparisonAnswer = { action: Decision['action']; mem_id: string | null; text: string }

type Judgement = { near: readonly NearMemory[]; answers: readonly ComparisonAnswer[] }

/**
 * What a model has answered about the facts of some turns while these wait to be written. In a busy team
 * another memory is near almost every fact by then; to ask about it again each time would make all turns
 * wait for each other.
 *
 * An answer still holds when the memories that it names are as they were, and every other memory that is
 * new to it has no more in common with the fact than one that the model has told apart from it: it shares
 * no further word with the fact, and, where an embedder knows more than words, is no nearer to it.
 */
export class JudgedFacts {
  readonly #judgements = new Map<string, Judgement>()
  readonly #knowsWordsOnly: boolean

  constructor({ knowsWordsOnly }: { knowsWordsOnly: boolean }) {
    this.#knowsWordsOnly = knowsWordsOnly
  }

  record(fact: BatchFact, judgement: Judgement): void {
    this.#judgements.set(keyOf(fact), judgement)
  }

  /** @param near the memories near the fact now, nearest first */
  find(fact: BatchFact, near: readonly NearMemory[]): ComparisonAnswer[] | undefined {
    const judgement = this.#judgements.get(keyOf(fact))
    if (!judgement) return undefined
    const named = new Set(judgement.answers.map(({ mem_id: id }) => id))
    const seen = new Map(judgement.near.map(memory => [memory.id, memory]))
    const isAsItWas = ({ id, version, text }: NearMemory): boolean =>
      seen.get(id)?.version === version && seen.get(id)?.text === text
    const isNamedAsItWas = [...named].every(
      id => id === null || near.some(m => m.id === id && isAsItWas(m)),
    )
    if (!isNamedAsItWas) return undefined
    const toldApart = judgement.near.filter(({ id }) => !named.has(id))
    const holds = near.every(
      (memory, rank) =>
        isAsItWas(memory) ||
        toldApart.some(other =>
          this.#isNoNearer(
            fact,
            memory,
            other,
            near.findIndex(({ id }) => id === other.id),
            rank,
          ),
        ),
    )
    return holds ? [...judgement.answers] : undefined
  }

  /** Whether a memory has no more in common with a fact than another; `-1` is the rank of one that is no longer near. */
  #isNoNearer(
    fact: BatchFact,
    memory: NearMemory,
    other: NearMemory,
    rankOfOther: number,
    rank: number,
  ): boolean {
    const words = wordsOf(fact.text)
    const shared = sharedWords(wordsOf(memory.text), words)
    const others = new Set(sharedWords(wordsOf(other.text), words))
    const isFarther = this.#knowsWordsOnly || (rankOfOther >= 0 && rankOfOther < rank)
    return isFarther && shared.length > 0 && shared.every(word => others.has(word))
  }
}

const keyOf = ({ turn, text }: BatchFact): string => `${turn.id} ${text}`

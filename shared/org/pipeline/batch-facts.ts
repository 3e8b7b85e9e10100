import type { NearMemory } from '#shared/org/pipeline/nearest-shared.ts'
import { shareStem, stemsOf } from '#shared/org/pipeline/text-words.ts'
import type { TurnAuthor } from '#shared/org/pipeline/cached-completion.ts'
import type { TaggedFact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'

/** A fact of a batch. */
export type BatchFact = TaggedFact & {
  turn: TurnAuthor
  /** A rule of the organization shortened it to a note. */
  isNote: boolean
  /** An anti-rule matches it now. */
  isWithheld?: boolean
}

export const factsOfTurns = (turns: readonly TurnRow[]): BatchFact[] =>
  turns.flatMap(turn =>
    (turn.pass2 ?? []).map((fact, index) => {
      return { ...fact, turn, isNote: turn.pass1?.[index]?.note ?? false }
    }),
  )

/** The most facts of earlier turns that a fact is compared with. */
const earlierMax = 12

/**
 * Returns, for each fact, those of earlier turns that share a word with it, as memories that are not stored yet. An
 * answer that names one of them makes the turn wait.
 */
export function earlierFacts(facts: readonly BatchFact[]): NearMemory[][] {
  const memories = facts.map(toMemory)
  const words = facts.map(({ text }) => stemsOf(text))
  return facts.map(({ turn }, index) =>
    memories
      .slice(0, index)
      .filter((_, at) => facts[at]!.turn !== turn && shareStem(words[at], words[index]))
      .slice(-earlierMax),
  )
}

/** Begins the id of a fact that is no memory yet. */
const unstoredPrefix = 'fact '

const toMemory = ({ text, tags, turn }: BatchFact, index: number): NearMemory => ({
  id: `${unstoredPrefix}${index}`,
  text,
  tags,
  author: turn.author,
  acquiredAt: turn.saidAt.getTime(),
  version: 0,
  reviewed: false,
})

/** Whether a memory is a fact that is not stored yet. */
export const isUnstored = (id: string | null): boolean => id?.startsWith(unstoredPrefix) ?? false

/**
 * Returns the current labels of a fact's tags. A deleted tag keeps its label here, so that no role allows the
 * memory; its id stands for the label where another tag has taken it.
 */
export function currentTags(
  { tags }: Pick<OrgPolicy, 'tags'>,
  fact: Pick<TaggedFact, 'tags' | 'tagIds'>,
): string[] {
  const labels = new Map(tags.map(({ id, label }) => [id, label]))
  const currentLabels = new Set(tags.flatMap(({ label, former }) => [label, ...former]))
  return fact.tagIds.map((id, index) => {
    const label = fact.tags[index]!
    return labels.get(id) ?? (currentLabels.has(label) ? id : label)
  })
}

import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { type BatchFact, currentTags } from '#shared/org/pipeline/batch-facts.ts'
import type { CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { compareFacts } from '#shared/org/pipeline/compare-facts.ts'
import { findNearbyHidden, type NearestBackend } from '#shared/org/pipeline/nearest-shared.ts'
import { isNamedBy } from '#shared/org/pipeline/recheck-updates.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TurnRow } from '#shared/org/base/org-turns.postgres.ts'

type DecidedFacts = {
  leader: TurnRow
  policy: OrgPolicy
  facts: readonly BatchFact[]
  storedOnly?: boolean | undefined
  author: MemberScope
  decisions: readonly Decision[]
}

/** A fact that a memory hidden from its author contains already is not added again. */
export async function skipHiddenDuplicates(
  backend: CompletionBackend & NearestBackend,
  { author, decisions, ...about }: DecidedFacts,
  signal: AbortSignal,
): Promise<Decision[]> {
  const { policy, facts } = about
  const visibility = visibilityOf(author)
  const unseen = facts.flatMap((fact, index) => {
    const tags = currentTags(policy, fact)
    const isAdded = decisions[index]!.action === 'ADD'
    return isAdded && !isPermitted(visibility, tags) ? [{ fact: { ...fact, tags }, index }] : []
  })
  const unseenFacts = unseen.map(({ fact }) => fact)
  const hidden = await findNearbyHidden(backend, author, unseenFacts)
  // Whether two texts say the same is little to ask.
  const question = { ...about, facts: unseenFacts, ...hidden, model: policy.classifyModel }
  const answers = await compareFacts(backend, question, signal)
  const known = new Map(
    unseen.flatMap(({ index }, at) => {
      const [answer] = answers[at]!
      // Words of an answer about what the author may not see go nowhere.
      const isDuplicate = answer?.action === 'NONE' && hidden.near[at]!.some(isNamedBy(answer))
      return isDuplicate ? [[index, answer.mem_id]] : []
    }),
  )
  return decisions.map((decision, index) =>
    known.has(index)
      ? { text: decision.text, action: 'NONE', mem_id: known.get(index)!, hidden: true }
      : decision,
  )
}

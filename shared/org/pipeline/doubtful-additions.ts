import { isPermitted, visibilityOf } from '#shared/domain/visibility.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import { type BatchFact, currentTags } from '#shared/org/pipeline/batch-facts.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import { sensitiveKindsOf } from '#shared/org/pipeline/sensitive-kinds.ts'
import { findExecRule } from '#shared/org/base/rule-matching.ts'
import { findPending } from '#shared/org/memories/shared-lists.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

type DecidedFacts = {
  policy: OrgPolicy
  facts: readonly BatchFact[]
  author: MemberScope
  decisions: readonly Decision[]
}

/**
 * The decisions, with doubts about additions: one without tags that may be about something private waits
 * unseen, one that its own author may not see is looked at by a person. What waits already in the same
 * words is not added again, nor as the copy of an update.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function markDoubtfulAdditions(
  { mongo }: { mongo: Mongo },
  { policy, facts, author, decisions }: DecidedFacts,
): Promise<Decision[]> {
  const visibility = visibilityOf(author)
  const marked: Decision[] = []
  for (const [index, decision] of decisions.entries()) {
    if (decision.action !== 'ADD') {
      const { copy, ...update } = decision
      const isKnown = copy && (await findPending(mongo, policy, copy.text)) !== undefined
      marked.push(isKnown ? update : decision)
      continue
    }
    const tags = currentTags(policy, facts[index]!)
    const pending = decision.pending || isDoubtfullyOpen(policy, facts[index]!, decision.text)
    const unseen = !isPermitted(visibility, tags)
    const waiting = pending ? await findPending(mongo, policy, decision.text) : undefined
    marked.push(
      waiting === undefined
        ? { ...decision, ...(pending && { pending }), ...(unseen && { unseen }) }
        : { text: decision.text, action: 'NONE', mem_id: waiting },
    )
  }
  return marked
}

/**
 * Whether a fact without tags may be no matter for everyone: not every answer about its tags was a clear no,
 * or a text of it is of a sensitive kind. A note of what a rule of the organization holds back is meant to be
 * open.
 */
export function isDoubtfullyOpen(policy: OrgPolicy, fact: BatchFact, text: string): boolean {
  if (currentTags(policy, fact).length > 0) return false
  if (fact.isNote || findExecRule(policy, text) !== undefined) return false
  return fact.unclear === true || sensitiveKindsOf(text).length > 0
}

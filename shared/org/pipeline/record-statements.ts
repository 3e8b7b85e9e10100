import { findExecRule } from '#shared/org/base/rule-matching.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import { insertStatements } from '#shared/org/memories/shared-statements.postgres.ts'
import { redactOrSkipText } from '#shared/privacy/apply-redaction.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

type DecidedTurn = {
  turn: TurnRow
  policy: OrgPolicy
  facts: readonly TaggedFact[]
  decisions: readonly Decision[]
}

/**
 * Records what the shared memory has from a turn, for its author to see. A fact that is left out because a
 * memory hidden from its author says it is recorded as any other: whether it is listed tells nothing.
 */
export async function recordStatements(
  tx: Transaction,
  { turn, policy, facts, decisions }: DecidedTurn,
): Promise<void> {
  const statements = decisions.flatMap((decision, position) => {
    const { action, mem_id: memory, outdated = false, also = [], copy } = decision
    if (memory === null) return []
    // The new words of an update are made of the memory's as well.
    const fact = action === 'UPDATE' ? facts[position]! : decision
    const words = findExecRule(policy, fact.text) ? decision.text : fact.text
    const text = redactOrSkipText(policy.redaction, words)
    if (text === undefined) return []
    const statement = { position, memory, action, outdated, text }
    // Further memories that the fact changed, and its copy, are taken back one by one.
    const others = also.map(({ mem_id }) => ({ memory: mem_id, action }))
    if (copy?.mem_id) others.push({ memory: copy.mem_id, action: 'ADD' })
    const further = others.map((other, index) => ({
      ...statement,
      ...other,
      position: position + decisions.length * (index + 1),
    }))
    return [statement, ...further]
  })
  await insertStatements(tx, { turn: turn.id, saidAt: turn.saidAt }, statements)
}

import type { Budget as PresentedBudget } from '#api/contract/generated/types.ts'
import type { Budget, Budgets } from '#shared/access/budgets.ts'

/** Budgets of several keys with what is used of each, in this order; null for a key without one. */
export async function presentBudgets(
  { budgets }: { budgets: Budgets },
  ofKeys: readonly (Budget | undefined)[],
): Promise<(PresentedBudget | null)[]> {
  const subjects = ofKeys.flatMap(budget => (budget ? [budget.subject] : []))
  const used = await budgets.usedBy([...new Set(subjects)])
  return ofKeys.map(budget => {
    if (!budget) return null
    const { subject, requests, tokens, micros } = budget
    const use = used.get(subject)!
    return {
      requests,
      tokens,
      used_requests: requests === null ? 0 : use.requests,
      used_tokens: tokens === null ? 0 : use.tokens,
      resets_at: use.resetsAt?.toISOString() ?? null,
      ...(micros !== null && {
        dollars: micros / 1e6,
        used_dollars: use.micros / 1e6,
        dollars_reset_at: use.monthResetsAt?.toISOString() ?? null,
      }),
    }
  })
}

/** Dollars of a request in millionths; null: no limit, undefined: as it is. */
export const toMicros = (dollars: number | null | undefined): number | null | undefined =>
  dollars && Math.round(dollars * 1e6)

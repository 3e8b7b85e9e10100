import { isUntold, type Feedback } from '#shared/domain/feedback.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'

const fields = ['rawUnits', 'rawTokens', 'tier2Count', 'tier2Importance', 'tier2Tokens'] as const

/** The sum of two changes, or with -1 their difference. */
export const addDebt = (one: DebtChange, other: DebtChange, sign: 1 | -1 = 1): DebtChange =>
  Object.fromEntries(fields.map(name => [name, (one[name] ?? 0) + sign * (other[name] ?? 0)]))

/** What memories add to the debt: those of the core vault that are told and no reflection covers. */
export function debtOf(
  memories: readonly {
    session: string | null
    tier: number
    tokens: number
    importance?: number | undefined
    consolidated: boolean
    feedback?: Feedback | undefined
  }[],
): DebtChange {
  const debt = { rawUnits: 0, rawTokens: 0, tier2Count: 0, tier2Importance: 0, tier2Tokens: 0 }
  for (const memory of memories) {
    const { session, tier, tokens, importance = 0, consolidated } = memory
    if (session !== null || consolidated || tier === 3 || isUntold(memory)) continue
    if (tier === 1) {
      debt.rawUnits++
      debt.rawTokens += tokens
    } else {
      debt.tier2Count++
      debt.tier2Importance += importance
      debt.tier2Tokens += tokens
    }
  }
  return debt
}

import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { TombstonedMemory } from '#shared/vault/base/tombstones.mongo.ts'

/** Unconsolidated memories leave the debt; those of sessions were never part of it. */
export function deletionDebt(tombstoned: readonly TombstonedMemory[]): DebtChange {
  const waiting = tombstoned.filter(
    ({ session, consolidated }) => session === null && !consolidated,
  )
  const raw = waiting.filter(({ tier }) => tier === 1)
  const reflections = waiting.filter(({ tier }) => tier === 2)
  return {
    rawUnits: -raw.length,
    rawTokens: -sum(raw, ({ tokens }) => tokens),
    tier2Count: -reflections.length,
    tier2Importance: -sum(reflections, ({ importance }) => importance),
    tier2Tokens: -sum(reflections, ({ tokens }) => tokens),
  }
}

export const sum = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)

/** What a deletion adds that releases no source. */
export const noRelease: Required<DebtChange> = {
  rawUnits: 0,
  rawTokens: 0,
  tier2Count: 0,
  tier2Importance: 0,
  tier2Tokens: 0,
}

/** The sum of two changes. */
export const addDebt = (one: DebtChange, other: DebtChange): DebtChange =>
  Object.fromEntries(
    (Object.keys(noRelease) as (keyof DebtChange)[]).map(field => [
      field,
      (one[field] ?? 0) + (other[field] ?? 0),
    ]),
  )

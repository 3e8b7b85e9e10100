import fc from 'fast-check'
import t from 'tap'
import { presentDebt, presentDebtHeader } from '#api/present/debt.ts'
import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The counters of a vault; nothing else of a key's row is looked at. */
const owing = (rawTokens: number): ReturnType<typeof reflectionDebt> =>
  reflectionDebt({
    rawUnits: 1,
    rawTokens,
    tier2Count: 0,
    tier2Importance: 0,
    tier2Tokens: 0,
  } as KeyRow)

const equivalents = (tokens: number): [number, number] => [
  presentDebt(owing(tokens)).unconsolidated.raw.importance_equiv,
  presentDebtHeader(owing(tokens)).raw_importance_equiv,
]

t.test('importance_equiv is est_tokens * 150 / 50000, to the last of its three digits', async t => {
  for (const [tokens, importance] of [
    [0, 0],
    [1, 0.003],
    [7, 0.021],
    [333, 0.999],
    [50_000, 150],
    [123_457, 370.371],
  ] as const) {
    t.same(equivalents(tokens), [importance, importance])
  }
  const exact = fc.property(fc.nat(1_000_000_000), tokens => {
    const written = `${Math.floor((tokens * 3) / 1_000)}.${String((tokens * 3) % 1_000).padStart(3, '0')}`
    return equivalents(tokens).every(value => value === Number(written))
  })
  t.doesNotThrow(() => fc.assert(exact))
})

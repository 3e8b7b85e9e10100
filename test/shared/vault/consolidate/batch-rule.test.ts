import fc from 'fast-check'
import t from 'tap'
import { batchRule, type BatchTotals } from '#shared/vault/consolidate/checkout.ts'

type Row = { tokens: number; importance: number }

/** What a rule takes of a vault, oldest first. */
function taken(rows: readonly Row[], rule: ReturnType<typeof batchRule>): BatchTotals {
  const sum = { count: 0, tokens: 0, importance: 0 }
  for (const row of rows) {
    if (!rule(sum, row)) break
    sum.count++
    sum.tokens += row.tokens
    sum.importance += row.importance
  }
  return sum
}

const rowsOf = (tokensMax: number): fc.Arbitrary<Row[]> =>
  fc.array(
    fc.record({
      tokens: fc.integer({ min: 1, max: tokensMax }),
      importance: fc.integer({ min: 1, max: 10 }),
    }),
    { minLength: 1, maxLength: 200 },
  )

const budgets = fc.oneof(fc.constant(undefined), fc.double({ noNaN: true }), fc.integer())

t.test('a budget is kept, filled as far as possible, and never blocks', async t => {
  fc.assert(
    fc.property(rowsOf(900), fc.constantFrom(1, 2), budgets, (rows, tier, asked) => {
      if (tier === 2 && asked === undefined) return
      const budget = Math.min(200_000, Math.max(1_000, asked ?? 50_000))
      const { count, tokens } = taken(rows, batchRule(tier, asked))
      const next = rows[count]
      if (count < 1 || tokens > budget) throw new Error(`${count} rows of ${tokens} tokens`)
      if (next && tokens + next.tokens <= budget) throw new Error('there was room for one more')
    }),
  )
  t.pass('over 100 vaults')
})

t.test('tier 2 by itself: the last row completes 150 importance or 10,000 tokens', async t => {
  fc.assert(
    fc.property(rowsOf(1_500), rows => {
      const rule = batchRule(2)
      const all = taken(rows, rule)
      const before = taken(rows.slice(0, all.count - 1), rule)
      const full = all.importance >= 150 || all.tokens >= 10_000
      if (!full && all.count < rows.length) throw new Error('it stopped too early')
      if (before.importance >= 150 || before.tokens >= 10_000) throw new Error('one row too many')
    }),
  )
  t.pass('over 100 vaults')
})

t.test('a batch holds at most 10,000 memories', async t => {
  const many = Array.from({ length: 11_000 }, () => ({ tokens: 1, importance: 0 }))
  t.equal(taken(many, batchRule(1, 200_000)).count, 10_000)
  t.equal(taken(many, batchRule(2, 200_000)).count, 10_000)
  t.equal(taken(many, batchRule(2)).count, 10_000)
})

t.test('what exceeds the budget by itself is a batch of its own', async t => {
  t.match(taken([{ tokens: 9_000, importance: 0 }], batchRule(1, 1_000)), { count: 1 })
})

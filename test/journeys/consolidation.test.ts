import t from 'tap'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { checkOut, commit, ingestTexts } from '#test/support/start/consolidation.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const vault = await startTestApi(t, backend, await buildKey(backend))

const search = async (query: string, tiers?: number[]) =>
  (await vault.post('/v1/memory/search', { query, limit: 20, ...(tiers && { tiers }) })).body

const inspect = (id: string) => vault.post('/v1/memory/inspect', { memory_id: id })

/** A day of talk, about 450 tokens. */
const day = (n: number): string =>
  `Day ${n}: ${'we spoke about the garden, the boat and what the children did at school. '.repeat(28)}`

t.test('from a debt that suggests it to high-level reflections, and down again', async t => {
  await ingestTexts(
    vault,
    Array.from({ length: 140 }, (_, n) => day(n)),
  )
  const { reflection: debt } = await search('garden')
  t.ok(debt.unconsolidated.raw.est_tokens > 50_000)
  t.match(debt.suggestion, /^raw consolidation suggested: \d+ unconsolidated importance$/)

  let batches = 0
  let covered = 0
  for (;;) {
    const { body: batch } = await checkOut(vault)
    if (batch.batch_id === null) break
    batches++
    covered += batch.count
    const written = Array.from({ length: 10 }, (_, n) => ({
      text: `In stretch ${batches} the family planted bed number ${n} and sailed the boat home.`,
      importance: 10,
    }))
    const { body } = await commit(vault, batch.batch_id, written)
    t.equal(body.sources_consolidated, batch.count)
  }
  t.equal(covered, 140)
  t.ok(batches >= 2)

  const after = await search('bed number 3 boat', [2])
  t.equal(after.tierBreakdown.tier2, after.totalMemories)
  t.match(after.reflection.unconsolidated, {
    raw: { units: 0, est_tokens: 0 },
    tier2: { count: batches * 10, importance: batches * 100 },
  })
  t.equal(
    after.reflection.suggestion,
    `tier 2 consolidation suggested: ${batches * 100} unconsolidated importance`,
  )

  for (;;) {
    const { body: batch } = await checkOut(vault, { tier: 2 })
    if (batch.batch_id === null) break
    await commit(vault, batch.batch_id, [
      { text: 'The family holds together around the garden and the boat.', importance: 7 },
    ])
  }
  const all = await search('the family, the garden and the boat')
  t.ok(all.tierBreakdown.raw > 0 && all.tierBreakdown.tier2 > 0 && all.tierBreakdown.tier3 > 0)
  t.match(all.reflection, { suggestion: null, unconsolidated: { tier2: { count: 0 } } })

  const top = all.memories.find(({ tier }: { tier: number }) => tier === 3)
  const { body: meaning } = await inspect(top.id)
  t.match(meaning, { tier: 3, sources_deleted: 0, truncated: false })
  t.ok(meaning.sources_total > 0)
  const { body: happening } = await inspect(meaning.sources[0].id)
  t.match(happening, { tier: 2, sources_deleted: 0 })
  const [first] = happening.sources
  t.match(first, { tier: 1, role: 'user', content: /^Day \d+: we spoke/ })
  await vault.post('/v1/memory/delete-ids', { ids: [first.id] })
  t.match((await inspect(happening.memory_id)).body, {
    sources_total: happening.sources_total,
    sources_deleted: 1,
  })
  const { body: day2 } = await inspect(happening.sources[1].id)
  t.ok(
    day2.consolidated_into.some(({ id }: { id: string }) => id === happening.memory_id),
    'and upwards again',
  )

  await ingestTexts(vault, ['and then a new day began'], { from: '2025-01-01T00:00:00Z' })
  t.match((await checkOut(vault)).body, { count: 1 }, 'what is new waits for the next time')
})

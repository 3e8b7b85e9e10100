import fc from 'fast-check'
import t from 'tap'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import { checkOut, commit, ingestTexts, expireLease } from '#test/support/start/consolidation.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)

/** What a client does next: alone, or `times` at once. The batch is one of those it has had so far. */
type Step =
  | { do: 'remember'; count: number }
  | { do: 'checkout'; tier: 1 | 2; times: number }
  | { do: 'commit'; batch: number; times: number }
  | { do: 'run out'; batch: number }

const times = fc.integer({ min: 1, max: 4 })
const batch = fc.nat({ max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('remember' as const), count: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('checkout' as const), tier: fc.constantFrom(1, 2), times }),
  fc.record({ do: fc.constant('commit' as const), batch, times }),
  fc.record({ do: fc.constant('run out' as const), batch }),
)

/** A vault as it should be: what exists in each tier, what covers it, and which batches are out. */
type Model = {
  existing: { 1: number; 2: number }
  batches: { id: string; tier: 1 | 2; sources: string[]; state: 'lent' | 'over' | 'committed' }[]
}

/** About 300 tokens: three to a batch. */
const text = (n: number): string => `Note ${n}. ${'The tide was high and we waited. '.repeat(36)}`

const expect = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

async function take(client: TestClient, model: Model, step: Step): Promise<void> {
  if (step.do === 'remember') {
    const texts = Array.from({ length: step.count }, (_, n) => text(model.existing[1] + n))
    model.existing[1] += step.count
    return ingestTexts(client, texts)
  }
  if (step.do === 'checkout') return borrow(client, model, step)
  const lease = model.batches[step.batch]
  if (!lease) return undefined
  if (step.do === 'commit') return settle(client, model, lease, step.times)
  if (lease.state === 'lent') lease.state = 'over'
  return expireLease(backend, lease.id)
}

async function borrow(
  client: TestClient,
  { existing, batches }: Model,
  { tier, times }: Extract<Step, { do: 'checkout' }>,
): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: times }, () => checkOut(client, { tier, max_tokens: 1_000 })),
  )
  const gone = (): string[] =>
    batches
      .filter(lease => lease.tier === tier && lease.state !== 'over')
      .flatMap(lease => lease.sources)
  for (const { body } of answers.filter(({ body }) => body.batch_id !== null)) {
    const sources = body.source_ids as string[]
    expect(sources.length > 0 && !sources.some(id => gone().includes(id)), 'lent twice')
    batches.push({ id: body.batch_id, tier, sources, state: 'lent' })
  }
  if (answers.some(({ body }) => body.batch_id === null)) {
    expect(gone().length === existing[tier], `${existing[tier] - gone().length} were not lent`)
  }
}

async function settle(
  client: TestClient,
  { existing }: Model,
  lease: Model['batches'][number],
  times: number,
): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: times }, () =>
      commit(client, lease.id, [{ text: `About ${lease.id.slice(-12)}.`, importance: 4 }]),
    ),
  )
  if (lease.state === 'over') {
    return expect(
      answers.every(({ status }) => status === 409),
      'an expired batch was committed',
    )
  }
  const first = answers.filter(({ body }) => body.already_committed === false).length
  expect(first === (lease.state === 'lent' ? 1 : 0), `${first} commits were the first`)
  expect(new Set(answers.map(({ body }) => body.created[0].id)).size === 1, 'answers differ')
  if (lease.state === 'lent' && lease.tier === 1) existing[2]++
  lease.state = 'committed'
}

/** The debt counts exactly what no committed batch covers. */
async function debtAgrees(client: TestClient, { existing, batches }: Model): Promise<void> {
  const covered = (tier: 1 | 2): number =>
    batches
      .filter(lease => lease.tier === tier && lease.state === 'committed')
      .reduce((sum, { sources }) => sum + sources.length, 0)
  const { body } = await client.post('/v1/memory/search', { query: 'tide', limit: 1 })
  const { raw, tier2 } = body.reflection.unconsolidated
  expect(raw.units === existing[1] - covered(1), `raw debt ${raw.units}`)
  expect(tier2.count === existing[2] - covered(2), `tier 2 debt ${tier2.count}`)
  expect(tier2.importance === 4 * tier2.count, `tier 2 importance ${tier2.importance}`)
}

t.test('in any order of things, alone or at once, every memory is consolidated once', async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async steps => {
      const client = createTestClient(base, await buildKey(backend))
      const model: Model = { existing: { 1: 0, 2: 0 }, batches: [] }
      await take(client, model, { do: 'remember', count: 6 })
      for (const step of steps) await take(client, model, step)
      await debtAgrees(client, model)
    }),
    { numRuns: 20, endOnFailure: true },
  )
  t.pass('20 histories')
})

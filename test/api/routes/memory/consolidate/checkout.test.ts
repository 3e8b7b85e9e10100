import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import {
  readUsageEvents,
  checkOut,
  commit,
  buildVault,
  type Vault,
  ingestTexts,
  expireLease,
} from '#test/support/start/consolidation.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { falsifyDebt, setBalance } from '#test/support/checks/alter.ts'
import { loseAnswers } from '#test/support/checks/alter-jobs.ts'
import { balanceOf } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, base } = await startService(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })

const newVault = () => buildVault(backend, base)

const textsOf = ({ body }: { body: { memories: { text: string }[] } }): string[] =>
  body.memories.map(({ text }) => text)

/** About 400 tokens, so that one text is one memory. */
const longText = (n: number): string =>
  `Entry ${n}. ${'The harbour was busy and the boats came in late that day. '.repeat(30)}`

/** As many reflections as ratings, made of one raw memory each time. */
async function reflect(vault: Vault, importance: readonly number[], words = 1): Promise<string[]> {
  await ingestTexts(vault, ['a day like any other'])
  const { body } = await checkOut(vault)
  const entries = importance.map((rating, n) => ({
    text: `Reflection ${n} ${'about the sea '.repeat(words)}`,
    importance: rating,
  }))
  return (await commit(vault, body.batch_id, entries)).body.created.map(
    ({ id }: { id: string }) => id,
  )
}

t.test('200: every documented field, oldest first', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['second thing', 'third thing'], { from: '2024-05-02T08:00:00Z' })
  await ingestTexts(vault, ['first thing'], { from: '2023-01-01T08:00:00Z' })

  const before = Date.now()
  const { status, body } = await checkOut(vault)
  t.equal(status, 200)
  t.match(body, {
    tier: 1,
    count: 3,
    covers: { from: '2023-01-01T08:00:00.000Z', to: '2024-05-03T08:00:00.000Z' },
    memories: [
      { text: 'first thing', date: '2023-01-01T08:00:00.000Z' },
      { text: 'second thing', date: '2024-05-02T08:00:00.000Z' },
      { text: 'third thing', date: '2024-05-03T08:00:00.000Z' },
    ],
    reflection_contract: {
      version: 2,
      target_tier: 2,
      entry_schema: {
        text: { type: 'string', minLength: 1, maxLength: 8_000 },
        importance: { type: 'integer', minimum: 1, maximum: 10 },
      },
      min_entries: 1,
      max_entries: 100,
      recommended_entries: '5-10',
    },
    tier_definitions: { target_tier: 2, instruction: /what happened/ },
  })
  t.match(body.reflection_contract.instructions, /JSON[\s\S]*entries/)
  t.match(body.reflection_contract.instructions, /stands for itself[\s\S]*importance from 1 to 10/)
  t.equal(body.est_tokens, 6)
  t.equal(new Set(body.source_ids).size, 3)
  const lentAt = Date.parse(body.lease_expires_at) - 15 * 60_000
  t.ok(lentAt >= before - 5 && lentAt <= Date.now() + 5, body.lease_expires_at)
})

t.test('200: nothing to consolidate ends the loop and is free', async t => {
  const vault = await newVault()
  for (const tier of [1, 2]) {
    const { status, body } = await checkOut(vault, { tier })
    t.equal(status, 200)
    t.match(body, { batch_id: null, tier, count: 0, message: /Nothing to consolidate/ })
  }
  t.same(await readUsageEvents(backend, vault.vault, 'checkout'), [])
})

t.test(
  '200: with nothing waiting and nothing lent the debt is nought, whatever it said',
  async t => {
    const vault = await newVault()
    await ingestTexts(vault, ['the only memory'])
    const wrong = () => falsifyDebt(backend, vault.vault)
    const debt = async () =>
      (await vault.post('/v1/memory/search', { query: 'only', limit: 1 })).body.reflection
        .unconsolidated
    await wrong()
    const { body: lent } = await checkOut(vault)
    await checkOut(vault)
    t.match(await debt(), { raw: { units: 7 } }, 'not while something is lent')
    await commit(vault, lent.batch_id, [{ text: 'There was one memory.', importance: 5 }])
    await checkOut(vault)
    t.match(await debt(), { raw: { units: 0, est_tokens: 0 }, tier2: { count: 4 } })
    await expireLease(backend, (await checkOut(vault, { tier: 2 })).body.batch_id)
    await commit(vault, (await checkOut(vault, { tier: 2 })).body.batch_id, [
      { text: 'Memories are few.', importance: 5 },
    ])
    await checkOut(vault, { tier: 2 })
    t.match(await debt(), { tier2: { count: 0, importance: 0, est_tokens: 0 } })
  },
)

t.test('200: billed once for the tokens of the batch, with the session', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['one two three', 'four five six'])
  const { body } = await checkOut(vault, { tier: 1, session_id: 'evening' })
  await checkOut(vault, { tier: 1 })
  t.same(await readUsageEvents(backend, vault.vault, 'checkout'), [
    { tokens: body.est_tokens, session: 'evening' },
  ])
})

t.test('200: a batch keeps its budget; what is too much comes with the next', async t => {
  const vault = await newVault()
  await ingestTexts(
    vault,
    Array.from({ length: 12 }, (_, n) => longText(n)),
  )
  const first = await checkOut(vault, { tier: 1, max_tokens: 2_000 })
  const [size] = [first.body.est_tokens / first.body.count]
  t.ok(first.body.est_tokens <= 2_000)
  t.ok(first.body.est_tokens + size > 2_000, 'and is as full as it can be')
  const second = await checkOut(vault, { tier: 1, max_tokens: 2_000 })
  t.same(
    [...textsOf(first), ...textsOf(second)],
    Array.from({ length: first.body.count + second.body.count }, (_, n) => longText(n)),
  )
})

t.test('200: max_tokens is brought between 1,000 and 200,000, never refused', async t => {
  const vault = await newVault()
  await ingestTexts(
    vault,
    Array.from({ length: 140 }, (_, n) => longText(n)),
  )
  for (const max_tokens of [-5, 0, 1, 999.5, 1_000]) {
    const { status, body } = await checkOut(vault, { tier: 1, max_tokens })
    t.equal(status, 200)
    t.ok(body.est_tokens > 500 && body.est_tokens <= 1_000, `${max_tokens}: ${body.est_tokens}`)
    await expireLease(backend, body.batch_id)
  }
  const usual = await checkOut(vault)
  t.ok(usual.body.est_tokens > 49_000 && usual.body.est_tokens <= 50_000, 'tier 1 without it')
  await expireLease(backend, usual.body.batch_id)
  const all = await checkOut(vault, { tier: 1, max_tokens: 1e12 })
  t.equal(all.body.count, 140)
})

t.test('200: tier 2 takes whole reflections until they weigh 150', async t => {
  const vault = await newVault()
  const ids = await reflect(
    vault,
    Array.from({ length: 40 }, () => 8),
  )
  const { body } = await checkOut(vault, { tier: 2 })
  t.equal(body.count, 19, '18 weigh 144, the nineteenth completes it')
  t.same(body.source_ids, ids.slice(0, 19))
  t.match(body, {
    tier: 2,
    reflection_contract: { target_tier: 3, instructions: /what it means/ },
    tier_definitions: { target_tier: 3, instruction: /what it means/ },
    covers: { from: '2024-01-01T09:00:00.000Z', to: '2024-01-01T09:00:00.000Z' },
  })
  t.equal((await checkOut(vault, { tier: 2 })).body.count, 19)
  t.equal((await checkOut(vault, { tier: 2 })).body.count, 2, 'the rest, though it weighs less')
})

t.test('200: tier 2 stops at 10,000 tokens, the last reflection included', async t => {
  const vault = await newVault()
  await reflect(
    vault,
    Array.from({ length: 30 }, () => 1),
    500,
  )
  const { body } = await checkOut(vault, { tier: 2 })
  const size = body.est_tokens / body.count
  t.ok(body.est_tokens >= 10_000, `${body.est_tokens} tokens`)
  t.ok(body.est_tokens - size < 10_000)
})

t.test('200: tier 2 with max_tokens keeps the budget and forgets about importance', async t => {
  const vault = await newVault()
  await reflect(
    vault,
    Array.from({ length: 60 }, () => 10),
    10,
  )
  const { body } = await checkOut(vault, { tier: 2, max_tokens: 1_500 })
  t.ok(body.est_tokens <= 1_500)
  t.ok(body.count > 15, 'more than 150 importance')
})

t.test('200: sessions are not consolidated', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['said in a session'], { session: 'trip' })
  t.equal((await checkOut(vault, { tier: 1 })).body.batch_id, null)
  t.equal((await checkOut(vault, { tier: 1 }, { 'x-session-id': 'trip' })).body.batch_id, null)
})

t.test('200: what was lent is lent again when its 15 minutes are over', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['lent and lost'])
  const first = await checkOut(vault)
  t.equal((await checkOut(vault)).body.batch_id, null)
  await expireLease(backend, first.body.batch_id)
  const again = await checkOut(vault)
  t.not(again.body.batch_id, first.body.batch_id)
  t.same(again.body.source_ids, first.body.source_ids)
})

t.test('200: twenty at once never share a memory', async t => {
  const vault = await newVault()
  const count = 60
  await ingestTexts(
    vault,
    Array.from({ length: count }, (_, n) => longText(n)),
  )
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => checkOut(vault, { tier: 1, max_tokens: 1_500 })),
  )
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  const lent = answers.flatMap(({ body }) => body.source_ids ?? [])
  t.equal(new Set(lent).size, lent.length)
  t.equal(lent.length, count, 'and together they have all')
  const bills = await readUsageEvents(backend, vault.vault, 'checkout')
  t.equal(bills.length, answers.filter(({ body }) => body.batch_id).length)
})

t.test('200: the same request again gets the same batch and one bill', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['asked for twice', 'and once more'])
  const headers = { 'idempotency-key': 'loop-1' }
  const first = await checkOut(vault, { tier: 1 }, headers)
  t.same((await checkOut(vault, { tier: 1 }, headers)).body, first.body)
  await loseAnswers(backend, 'loop-1')
  t.same((await checkOut(vault, { tier: 1 }, headers)).body, first.body, 'after a crash as well')
  t.equal((await readUsageEvents(backend, vault.vault, 'checkout')).length, 1)
})

t.test('200: embeddings names the vault space that is consolidated', async t => {
  const vault = await newVault()
  const embeddings = 'ollama/double'
  await vault.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'in another space' }],
    embeddings,
  })
  const { body: elsewhere } = await checkOut(vault)
  t.equal(elsewhere.batch_id, null)
  t.match(elsewhere.message, 'in the space of local: what waits is in that of ollama/double')
  t.match(elsewhere.message, '"embeddings": "ollama/double"')
  t.match((await checkOut(vault, { tier: 2 })).body.message, /every reflection is covered/)
  t.same(textsOf(await checkOut(vault, { tier: 1, embeddings })), ['in another space'])
  t.equal(
    (await checkOut(vault, { tier: 1 }, { 'x-embedding-model': embeddings })).body.batch_id,
    null,
    'the header says the same: it is lent',
  )
})

t.test('200: a memory larger than the budget is a batch of its own', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['short one'])
  await backend.mongo.memories.updateOne(
    { vault: vault.vault },
    { $set: { text: 'edited into a long text', tokens: 6_000 } },
  )
  await ingestTexts(vault, ['and a later one'], { from: '2025-01-01T00:00:00Z' })
  const { body } = await checkOut(vault, { tier: 1, max_tokens: 1_000 })
  t.match(body, { count: 1, est_tokens: 6_000 })
})

t.test('200: a checkout is paid out of the balance', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['worth a few tokens'])
  await setBalance(backend, { vault: vault.vault }, 1000)
  const { body } = await checkOut(vault)
  t.equal(await balanceOf(backend, vault), 1_000 - body.est_tokens)
})

t.test('502: an embedding model that does not answer', async t => {
  const vault = await newVault()
  provider.fail(401, 4)
  const answer = await checkOut(vault, { tier: 1, embeddings: `ollama/${mintId()}` })
  t.match(answer, { status: 502, body: { error: /refused \(status 401\)/ } })
  provider.fail(401, 0)
})

t.test('200: another vault sees nothing of it', async t => {
  const vault = await newVault()
  await ingestTexts(vault, ['mine alone'])
  const stranger = await newVault()
  t.equal((await checkOut(stranger)).body.batch_id, null)
  t.same(textsOf(await checkOut(vault)), ['mine alone'])
})

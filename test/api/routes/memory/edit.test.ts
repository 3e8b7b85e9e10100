import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { createTestClient, startTestApi, type TestClient } from '#test/support/start/api.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  readBilledUsage,
  insertStoredMemories,
  readVaultScope,
  type StoredMemoryFixture,
} from '#test/support/checks/stored-memories.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import {
  clearSessionOf,
  failEditBills,
  raiseEpochOf,
  removeDocuments,
  setDocumentFields,
} from '#test/support/checks/alter.ts'
import { vaultRow } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, newClient } = await startService(t, {
  env: { EMBEDDINGS: 'local', OPENAI_API_KEY: 'secret', OPENAI_BASE_URL: provider.baseUrl },
})
const { key, ...api } = await newClient()
const scope = await readVaultScope(backend, key)
const second = await createTestBackend(t, { config: backend.config })
const elsewhere = await startTestApi(t, second, key)

const begin = Date.parse('2025-03-01T12:00:00Z')
const planted = async (row: Partial<StoredMemoryFixture>, within = scope): Promise<string> =>
  (
    await insertStoredMemories(backend, within, [
      { text: `planted ${mintId()}`, at: begin, ...row },
    ])
  )[0]!
const edit = (memory_id: string, text: unknown, headers = {}, client: TestClient = api) =>
  client.post('/v1/memory/edit', { memory_id, text }, headers)
const documentOf = async (id: string, { vault } = scope): Promise<MemoryDocument | null> =>
  backend.mongo.memories.findOne({ vault, _id: id })
const found = async (client: TestClient, query: string, session?: string): Promise<string[]> => {
  const body = { query, limit: 200, ...(session && { session_id: session }) }
  const answer = await client.post('/v1/memory/search', body)
  return answer.body.memories.map(({ content }: { content: string }) => content)
}
const debtOf = async (within: { vault: string }): Promise<number[]> => {
  const row = await vaultRow(backend, within.vault)
  return [row.rawUnits, row.rawTokens, row.tier2Count, row.tier2Importance, row.tier2Tokens]
}

t.test('200: the text changes, and nothing else; every process finds the new one', async t => {
  const id = await planted({ text: 'The boiler room door sticks', speaker: 'Ada' })
  const before = await documentOf(id)
  t.ok((await found(api, 'boiler room')).includes('The boiler room door sticks'))
  t.ok((await found(elsewhere, 'boiler room')).includes('The boiler room door sticks'))

  const { status, body } = await edit(id.toUpperCase(), 'Platypus feeding is at noon')
  t.equal(status, 200)
  t.same(body, {
    memory_id: id,
    updated: true,
    date: '2025-03-01T12:00:00.000Z',
    tier: 1,
    importance: null,
    token_count: countTokens('Platypus feeding is at noon'),
  })
  for (const client of [api, elsewhere]) {
    t.ok((await found(client, 'platypus feeding')).includes('Platypus feeding is at noon'))
    t.notOk((await found(client, 'boiler room')).includes('The boiler room door sticks'))
  }
  const after = await documentOf(id)
  const { text: _, hash: __, vectors: ___, tokens: ____, version, ...kept } = before!
  t.match(after, { ...kept, version: version + 1 })
  t.notSame(after!.vectors, before!.vectors)
})

t.test('200: a reflection keeps tier, importance, period and lineage', async t => {
  const [batch, source] = [mintId(), mintId()]
  const reflection = {
    tier: 2 as const,
    importance: 7,
    coversFrom: begin - 5,
    batch,
    sources: [source],
  }
  const id = await planted({ text: 'She likes tea', ...reflection })
  const { body } = await edit(id, 'She prefers coffee since May')
  t.match(body, { tier: 2, importance: 7, date: '2025-03-01T12:00:00.000Z' })
  t.match(await documentOf(id), {
    batch,
    sources: [source],
    covers: { from: new Date(begin - 5), to: new Date(begin) },
    importance: 7,
  })
})

t.test('200: a session memory is edited in its session', async t => {
  const id = await planted({ text: 'The hotel is booked for two', session: 'trip' })
  t.equal((await edit(id, 'The hotel is booked for five')).status, 200)
  t.same(await found(elsewhere, 'hotel booked', 'trip'), ['The hotel is booked for five'])
  t.notOk((await found(api, 'hotel booked')).some(text => text.includes('hotel')))
})

t.test('200: up to 32,000 characters, never cut', async t => {
  const id = await planted({})
  const long = 'a long tale '.repeat(2_666) + '🚲🚲🚲🚲🚲🚲🚲🚲'
  t.equal(Array.from(long).length, 32_000)
  const { status, body } = await edit(id, long)
  t.equal(status, 200)
  t.equal(body.token_count, countTokens(long))
  t.equal((await documentOf(id))!.text, long)
  t.match(await edit(id, `${long}x`), { status: 400, body: { error: /text.*32000/ } })
})

t.test('200: a memory may be given the text it has', async t => {
  const id = await planted({ text: 'It stays as it is' })
  t.match(await edit(id, 'It stays as it is'), { status: 200, body: { updated: true } })
})

t.test('200: vectors of every space are made anew, and one nobody can make is dropped', async t => {
  const model = 'openai/text-embedding-3-small'
  const openai = await backend.embedders.get(model)
  const local = await backend.embedders.get()
  const id = await planted({ text: 'Magpies steal spoons' })
  const vector = (await documentOf(id))!.vectors[local.space]!
  await setDocumentFields(backend, scope.vault, id, {
    [`vectors.${openai.space}`]: vector,
    'vectors.openai__text-embedding-3-small-4': vector,
    'vectors.of_another_scheme_8': vector,
    'vectors.mistral__embed-8': vector,
  })
  t.equal((await edit(id, 'Otters steal forks')).status, 200)
  const { vectors } = (await documentOf(id))!
  t.same(Object.keys(vectors).sort(), [local.space, openai.space].sort())
  const [remade] = await openai.embedTexts(['Otters steal forks'])
  t.same(vectors[openai.space]!.toFloat32Array(), remade)
  const headers = { 'x-embedding-model': model }
  const { body } = await api.post('/v1/memory/search', { query: 'forks', limit: 9 }, headers)
  t.match(body.memories[0], { content: 'Otters steal forks' })
})

t.test('200: a memory of lost spaces alone goes on in the default one', async t => {
  const id = await planted({ text: 'Only in an old space' })
  const { vectors } = (await documentOf(id))!
  const lost = { 'mistral__embed-8': Object.values(vectors)[0]! }
  await setDocumentFields(backend, scope.vault, id, { vectors: lost })
  t.equal((await edit(id, 'In the present space again')).status, 200)
  t.same(Object.keys((await documentOf(id))!.vectors), [(await backend.embedders.get()).space])
})

t.test('200: bills the tokens of the new text, once for one Idempotency-Key', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const id = await planted({ session: 'trip' }, own)
  const headers = { 'idempotency-key': 'one' }
  const first = await edit(id, 'billed just once', headers, client)
  const again = await edit(id, 'billed just once', headers, client)
  t.same(again.body, first.body)
  t.same(await readBilledUsage(backend, own, 'edit'), [
    { tokens: countTokens('billed just once'), session: 'trip' },
  ])
  t.equal((await documentOf(id, own))!.version, 2)
})

t.test('200: the debt follows what is not consolidated', async t => {
  const client = await newClient()
  const { scope: mine } = await client.caller()
  const text = 'one two three four five six seven eight nine ten'
  const raw = await planted({ text: 'raw' }, mine)
  const reflection = await planted({ text: 'reflection', tier: 2, importance: 3 }, mine)
  const others = [
    await planted({ text: 'high', tier: 3, importance: 3 }, mine),
    await planted({ text: 'done', consolidated: true }, mine),
    await planted({ text: 'session', session: 's' }, mine),
  ]
  t.same(await debtOf(mine), [1, countTokens('raw'), 1, 3, countTokens('reflection')])
  for (const [index, id] of [raw, reflection, ...others].entries()) {
    t.equal((await edit(id, `${text} ${index}`, {}, client)).status, 200)
  }
  t.same(await debtOf(mine), [1, countTokens(`${text} 0`), 1, 3, countTokens(`${text} 1`)])
})

t.test('409: a text another memory has; nothing is changed or billed', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const id = await planted({ text: 'mine' }, own)
  await planted({ text: 'Zürich is far' }, own)
  await planted({ text: 'in a session', session: 'trip' }, own)
  const before = await documentOf(id, own)
  for (const text of ['Zürich is far', `  ${'Zürich is far'.normalize('NFD')}\n`, 'in a session']) {
    const answer = await edit(id, text, {}, client)
    t.match(answer, { status: 409, body: { error: /Another memory/, hint: String } })
  }
  t.same(await documentOf(id, own), before)
  t.same(await readBilledUsage(backend, own, 'edit'), [])

  await clearSessionOf(backend, own.vault, 'trip')
  t.equal((await edit(id, 'in a session', {}, client)).status, 200, 'that session was cleared')
  const foreign = await planted({ text: 'somebody else has it' })
  t.ok(foreign)
  t.equal((await edit(id, 'somebody else has it', {}, client)).status, 200)
})

t.test('400: a text that holds no words', async t => {
  const refused = await edit(await planted({}), ' \n ')
  t.match(refused, { status: 400, body: { error: /text holds no words/ } })
})

t.test('409: of twenty memories racing for one text exactly one gets it', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const clients = [client, createTestClient(elsewhere.base, client.key)]
  const ids = await insertStoredMemories(
    backend,
    own,
    Array.from({ length: 20 }, (_, index) => ({ text: `racer ${index}`, at: begin })),
  )
  const answers = await Promise.all(
    ids.map((id, index) => edit(id, 'the one text', {}, clients[index % 2])),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(409)])
  t.equal(
    await backend.mongo.memories.countDocuments({ vault: own.vault, text: 'the one text' }),
    1,
  )
  t.equal((await readBilledUsage(backend, own, 'edit')).length, 1)
})

t.test('200: twenty edits racing for one memory all count, one after the other', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const clients = [client, createTestClient(elsewhere.base, client.key)]
  const id = await planted({ text: 'start' }, own)
  const texts = Array.from({ length: 20 }, (_, index) => `edit ${'again '.repeat(index)}`)
  const answers = await Promise.all(
    texts.map((text, index) => edit(id, text, {}, clients[index % 2])),
  )
  t.same(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  )
  const { text, version, tokens } = (await documentOf(id, own))!
  t.equal(version, 21)
  t.ok(texts.includes(text))
  t.same((await debtOf(own)).slice(0, 2), [1, tokens])
  t.equal((await readBilledUsage(backend, own, 'edit')).length, 20)
  for (const client of clients) t.same(await found(client, text), [text])
})

t.test('200: an edit whose settling failed is settled by its job, exactly once', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const id = await planted({ text: 'the first wording' }, own)
  t.same(await found(client, 'wording'), ['the first wording'])
  await breakSettling(async () => {
    t.equal((await edit(id, 'a second wording', {}, client)).status, 500)
    t.equal((await documentOf(id, own))!.text, 'a second wording', 'written, and not settled')
  })
  await waitUntil('settled', async () => {
    await makeJobsDue(backend, 'edit-settle')
    return (await readBilledUsage(backend, own, 'edit')).length > 0
  })
  t.same(await found(client, 'wording'), ['a second wording'])
  t.same(await found(createTestClient(elsewhere.base, client.key), 'wording'), ['a second wording'])
  t.same((await debtOf(own)).slice(0, 2), [1, countTokens('a second wording')])
  await waitUntil('its job is done', async () => {
    const jobs = await jobsOf(backend, 'edit-settle')
    return jobs.every(({ state }) => state === 'completed')
  })
  t.equal((await readBilledUsage(backend, own, 'edit')).length, 1)
})

t.test('200: an edit after one that was never settled makes the debt right again', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const id = await planted({ text: 'one' }, own)
  const long = 'a much longer text than the one before it was'
  await breakSettling(async () => {
    t.equal((await edit(id, long, {}, client)).status, 500)
    t.same((await debtOf(own)).slice(0, 2), [1, countTokens('one')])
  })
  t.equal((await edit(id, 'two words', {}, client)).status, 200)
  t.same((await debtOf(own)).slice(0, 2), [1, countTokens('two words')])
  t.same(await found(client, 'words'), ['two words'])
})

/** Has every bill of an edit refused by the database meanwhile: after the text was written. */
async function breakSettling(work: () => Promise<void>): Promise<void> {
  const failing = await failEditBills(backend)
  try {
    await work()
  } finally {
    await failing.restore()
  }
}

t.test(
  '404: unknown, foreign, deleted and cleared memories look alike, and none comes back',
  async t => {
    const client = await newClient()
    const { scope: own } = await client.caller()
    const unknown = await edit(mintId(), 'x', {}, client)
    t.match(unknown, { status: 404, body: { error: 'No such memory' } })
    const foreign = await planted({})
    t.same((await edit(foreign, 'x', {}, client)).body, unknown.body)
    t.notMatch(await documentOf(foreign), { text: 'x' })

    const deleted = await planted({}, own)
    await removeDocuments(backend, own.vault, [deleted])
    t.same((await edit(deleted, 'x', {}, client)).body, unknown.body)
    t.equal(await documentOf(deleted, own), null)

    const cleared = await planted({}, own)
    await raiseEpochOf(backend, own.vault)
    t.same((await edit(cleared, 'x', {}, client)).body, unknown.body)
    t.same(await readBilledUsage(backend, own, 'edit'), [])
  },
)

t.test('502: when a model does not answer, memory, bill and debt stay as they are', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const { space } = await backend.embedders.get('openai/text-embedding-3-small')
  const id = await planted({ text: 'intact' }, own)
  const vector = Object.values((await documentOf(id, own))!.vectors)[0]!
  await setDocumentFields(backend, own.vault, id, { [`vectors.${space}`]: vector })
  const [before, debt] = [await documentOf(id, own), await debtOf(own)]
  provider.fail(401, 1)
  const answer = await edit(id, 'changed', { 'idempotency-key': 'retry' }, client)
  t.match(answer, { status: 502, body: { error: /refused \(status 401\)/ } })
  t.same(await documentOf(id, own), before)
  t.same(await debtOf(own), debt)
  t.same(await readBilledUsage(backend, own, 'edit'), [])
  const retried = await edit(id, 'changed', { 'idempotency-key': 'retry' }, client)
  t.equal(retried.status, 200, 'the same request may be sent again')
})

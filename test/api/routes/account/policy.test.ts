import t from 'tap'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { checkOut, commit } from '#test/support/start/consolidation.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { billedEvents, storedDocuments } from '#test/support/checks/observe.ts'
import { queuedRowsWith } from '#test/support/checks/observe-jobs.ts'
import { importFile, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const model = await startTeamModel(t)
const { backend, base, newClient } = await startService(t, { env: model.env })
const { query } = backend.postgres

// In two parts, so that nobody's scanner takes this file for a leak.
const secret = ['ghp_', 'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbC'].join('')
const iban = 'DE89 3704 0044 0532 0130 00'
const path = '/v1/account/policy'

const decide = (client: TestClient, redaction: object) =>
  client.send('PUT', path, { body: { redaction } })

async function user(redaction: object) {
  const { key, ...client } = await newClient()
  t.equal((await decide(client, redaction)).status, 200)
  const texts = async () => (await readDocuments(backend, key)).map(({ text }) => text)
  return { key, client, texts }
}

const said = (...texts: string[]) => ({
  messages: texts.map(content => ({ role: 'user', content })),
})

/** As it comes: what a provider says is not for our contract to judge. */
const ask = (key: string, content: string) =>
  fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'x-memory-key': key,
      authorization: 'Bearer sk-of-openai',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model: 'openai/gpt-5', ...said(content) }),
  })

t.test('200: nothing is looked for until the account decides', async t => {
  const { key, ...client } = await newClient()
  t.same((await client.get(path)).body, {
    redaction: { mode: 'off', kinds: ['secret', 'card', 'iban', 'national-id'] },
    decided_by: 'default',
    retention_days: null,
    create_users: true,
    user_daily_requests: null,
    user_daily_tokens: null,
    user_monthly_dollars: null,
    traces: 'texts',
    trace_days: 7,
    verbatim: false,
    tell_absence: false,
    keep_files: false,
    store_response: 'always',
    sessions: 'apart',
  })
  await client.post('/v1/memory/ingest?wait=true', said(`token ${secret}`))
  const put = await decide(client, { mode: 'redact', kinds: ['iban', 'email'] })
  t.same(put.body, {
    redaction: { mode: 'redact', kinds: ['iban', 'email'] },
    decided_by: 'account',
    retention_days: null,
    create_users: true,
    user_daily_requests: null,
    user_daily_tokens: null,
    user_monthly_dollars: null,
    traces: 'texts',
    trace_days: 7,
    verbatim: false,
    tell_absence: false,
    keep_files: false,
    store_response: 'always',
    sessions: 'apart',
  })
  await client.post('/v1/memory/ingest?wait=true', said(`token ${secret} of a@b.example`))
  t.same(
    (await readDocuments(backend, key)).map(({ text }) => text),
    [`token ${secret}`, `token ${secret} of [redacted:email]`],
    'only what is decided, and only from then on',
  )
})

t.test('redact: nothing private is stored, whichever way it comes', async t => {
  const { key, client, texts } = await user({ mode: 'redact' })
  const words = `the token is ${secret} and the account ${iban}`
  const clean = 'the token is [redacted:secret] and the account [redacted:iban]'

  await client.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'user', content: `one: ${words}` },
      { role: 'assistant', content: [{ type: 'text', text: `two: ${words}` }], name: iban },
    ],
  })
  t.same(await texts(), [`one: ${clean}`, `two: ${clean}`])
  t.equal((await readDocuments(backend, key))[1]!.speaker, '[redacted:iban]')

  const [first] = await readDocuments(backend, key)
  const edit = { memory_id: first!._id, text: `three: ${words}` }
  t.equal((await client.post('/v1/memory/edit', edit)).status, 200)
  const upload = await uploadFile(client, [
    { content: `four: ${words}`, role: 'user', timestamp: 1_700_000_000_000 },
  ])
  t.equal(upload.body.stats.stored, 1)
  const [exported] = (await client.get('/v1/memory/export?vectors=true')).body
  const restored = { ...exported, id: crypto.randomUUID(), content: `five: ${words}` }
  t.equal((await importFile(client, [restored])).body.imported, 1)

  const lent = await checkOut(client)
  const entries = [{ text: `six: ${words}`, importance: 5 }]
  t.equal((await commit(client, lent.body.batch_id, entries)).status, 200)

  model.scriptAnswers('chat', `eight: ${words}`)
  const chat = await ask(key, `seven: ${words}`)
  t.match(await chat.text(), secret, 'what the model says passes unchanged')
  t.match(JSON.stringify(model.calls.at(-1)!.body), secret, 'and what it is asked')
  await waitUntil('the call is stored', async () => (await texts()).length === 7)
  const stored = (await texts()).toSorted()
  t.same(
    stored,
    ['eight', 'five', 'four', 'seven', 'six', 'three', 'two'].map(n => `${n}: ${clean}`),
  )

  const queued = await queuedRowsWith(backend, secret)
  t.same(
    queued.filter(row => row.includes(`: the token`)),
    [],
    'nor on the way',
  )
})

t.test('redact: numbers, names of fields and what stands around a text go as well', async t => {
  const { key, client } = await user({ mode: 'redact' })
  const card = '4539578763621486'
  const metadata = { number: Number(card), [card]: 1, redacted: false, password: 'Tr0ub4dor&3' }
  await client.post('/v1/memory/ingest?wait=true', { ...said('a day at the sea'), metadata })
  const [row] = (await client.get('/v1/memory/export')).body
  t.same(row.metadata, {
    number: '[redacted:card]',
    'redacted-card': 1,
    redacted: false,
    password: '[redacted:secret]',
  })
  const lineage = { origin_key: card, consolidated: true, consolidated_by: [`batch ${card}`] }
  const line = { ...row, id: crypto.randomUUID(), ...lineage }
  t.equal((await importFile(client, [line])).body.imported, 1)
  const { key: destination_key } = await newClient()
  const graft = { destination_key, queries: [`sea ${card}`], threshold: 0.1 }
  t.equal((await client.post('/v1/memory/graft', graft)).status, 200)
  t.notMatch(JSON.stringify(await readDocuments(backend, key)), card)
  const kept = await query('select to_jsonb(o)::text as row from operations o')
  t.match(JSON.stringify(kept), 'sea [redacted:card]')
  t.notMatch(JSON.stringify(kept), card)
})

t.test('redact: a vector of other words is not kept with the new ones', async t => {
  const { key, client } = await user({ mode: 'redact' })
  await client.post('/v1/memory/ingest?wait=true', said('a day at the sea', 'a night in town'))
  const rows = (await client.get('/v1/memory/export?vectors=true')).body
  const other = { ...rows[0], id: crypto.randomUUID(), content: `my account is ${iban}` }
  await importFile(client, [{ ...other, vector: rows[1].vector }])
  const documents = await readDocuments(backend, key)
  const vectors = (await client.get('/v1/memory/export?vectors=true')).body
  t.equal(documents.at(-1)!.text.includes('DE89'), false)
  const imported = vectors.find(({ id }: { id: string }) => id === other.id)
  t.ok(imported.vector)
  t.notSame(imported.vector.values, rows[1].vector.values)
})

t.test('400: block names the kind and the place, never the words', async t => {
  const { key, client, texts } = await user({ mode: 'block' })
  const words = `the token is ${secret}`
  await client.post('/v1/memory/ingest?wait=true', said('a clean sheet'))
  const bills = async () =>
    (await billedEvents(backend, key)).filter(({ kind }) => kind !== 'checkout')
  const before = await bills()

  const refused = await client.post('/v1/memory/ingest', said('harmless', words))
  t.match(refused, { status: 400, body: { error: 'messages[1] holds a secret (secret)' } })
  const [first] = await readDocuments(backend, key)
  const edited = await client.post('/v1/memory/edit', { memory_id: first!._id, text: words })
  t.match(edited, { status: 400, body: { error: 'text holds a secret (secret)' } })
  const both = `${words}, ${iban}`
  const lent = await checkOut(client)
  const committed = await commit(client, lent.body.batch_id, [{ text: both, importance: 1 }])
  t.match(committed, {
    status: 400,
    body: {
      error: 'entries[0].text holds a secret (secret) and a bank account number (iban)',
      hint: /redaction policy/,
    },
  })
  for (const { body } of [refused, edited, committed]) t.notMatch(JSON.stringify(body), secret)
  t.same(await bills(), before, 'nothing is billed')

  const line = (content: string) => ({ content, role: 'user', timestamp: 1_700_000_000_000 })
  const upload = await uploadFile(client, [line(words), line('fine')])
  t.match(upload.body, {
    status: 'partial',
    stats: { stored: 1, failed: 1 },
    errors: [{ line: 1, error: /content holds a secret \(secret\)/ }],
  })
  const [exported] = (await client.get('/v1/memory/export')).body
  const foreign = [{ ...exported, id: crypto.randomUUID(), content: words }]
  const dryRun = await importFile(client, foreign, '?dry_run=true')
  t.match(dryRun.body, { errors: [{ line: 1, error: /holds a secret/ }] })
  const real = await importFile(client, foreign)
  t.match(real.body, { errors: [{ line: 1, error: /holds a secret/ }] })
  t.same((await texts()).toSorted(), ['a clean sheet', 'fine'])
})

t.test('200: block lets a model call through and remembers what it may', async t => {
  const { key, texts } = await user({ mode: 'block' })
  model.scriptAnswers('chat', 'I will not repeat it.', `you mean ${secret}?`, 'A token.')
  t.equal((await ask(key, `take ${secret}`)).status, 200)
  t.equal((await ask(key, 'what was it?')).status, 200)
  t.equal((await ask(key, 'what kind of thing was it?')).status, 200)
  await waitUntil('what may be stored is', async () => (await texts()).length === 4)
  t.same((await texts()).toSorted(), [
    'A token.',
    'I will not repeat it.',
    'what kind of thing was it?',
    'what was it?',
  ])
})

t.test('an organization decides for its members and for what they share', async t => {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const orgPath = `/v1/orgs/${team.org}/policy`
  const memories = `/v1/orgs/${team.org}/memories`
  await storeProviderKey(
    { query, seal: backend.seal },
    { account: team.account, actor: 'test' },
    'openai',
    'sk-0123456789abc',
  )
  const key = await team.addMember('ada@example.com')
  const member = createTestClient(base, key)
  const texts = async (vault: string) =>
    (await storedDocuments(backend, vault)).map(({ text }) => text)

  t.match((await admin.get(orgPath)).body, { decided_by: 'default' })
  await decide(admin, { mode: 'redact', kinds: ['iban'] })
  t.match((await admin.get(orgPath)).body, {
    decided_by: 'account',
    redaction: { mode: 'redact', kinds: ['iban'] },
  })
  await member.post('/v1/memory/ingest?wait=true', said(`pay to ${iban}`))
  const put = await admin.send('PUT', orgPath, { body: { redaction: { mode: 'block' } } })
  t.match(put.body, { decided_by: 'organization', redaction: { mode: 'block' } })

  t.match(await member.post('/v1/memory/ingest', said(`pay to ${iban}`)), {
    status: 400,
    body: { error: /bank account number/ },
  })
  const seeded = await admin.post(memories, {
    items: [{ text: 'the office is in Berlin' }, { text: `pay to ${iban}` }],
  })
  t.match(seeded, {
    status: 201,
    body: { created: 1, failed: 1, errors: [{ index: 1, error: /bank account number/ }] },
  })
  t.equal((await admin.post(memories, { text: `pay to ${iban}` })).status, 400)
  const id = seeded.body.items[0].mem_id
  const changed = await admin.send('PATCH', `${memories}/${id}`, {
    body: { text: `pay to ${iban}` },
  })
  t.match(changed, { status: 400, body: { error: /bank account number/ } })

  await admin.send('PUT', orgPath, { body: { redaction: { mode: 'redact' } } })
  const patched = await admin.send('PATCH', `${memories}/${id}`, {
    body: { text: `pay to ${iban}` },
  })
  t.equal(patched.body.text, 'pay to [redacted:iban]')
  await member.post('/v1/memory/ingest?wait=true', said(`Fact: rent: to ${iban}`))
  await waitUntil('the fact is shared', async () => (await texts(team.vault)).length === 2)
  t.same(await texts(team.vault), ['pay to [redacted:iban]', 'rent: to [redacted:iban]'])
  for (const { userPrompt } of model.calls) t.notMatch(JSON.stringify(userPrompt), 'DE89')

  await admin.send('PUT', orgPath, { body: { redaction: { mode: 'off' } } })
  const open = await admin.post(memories, { text: `or to ${iban}` })
  t.match(open.body.items, [{ text: `or to ${iban}` }], 'off decides too')
  await admin.send('PUT', orgPath, { body: { redaction: null } })
  t.match((await admin.get(orgPath)).body, { decided_by: 'account' })
})

t.test('what the extractor makes of blocked words is not shared', async t => {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  await storeProviderKey(
    { query, seal: backend.seal },
    { account: team.account, actor: 'test' },
    'openai',
    'sk-0123456789abc',
  )
  const member = createTestClient(base, await team.addMember('bob@example.com'))
  await admin.send('PUT', `/v1/orgs/${team.org}/policy`, {
    body: { redaction: { mode: 'block' } },
  })
  const facts = [
    { turn: 0, text: `the account is ${iban}`, note: false, confidence: 0.9 },
    { turn: 0, text: 'the rent is paid monthly', note: false, confidence: 0.9 },
  ]
  model.scriptAnswers('extract', JSON.stringify({ facts }))
  await member.post('/v1/memory/ingest?wait=true', said('about the rent'))
  const shared = () => storedDocuments(backend, team.vault)
  await waitUntil('the fact is shared', async () => (await shared()).length > 0)
  t.match(await shared(), [{ text: 'the rent is paid monthly' }])
})

t.test(
  'sessions: core lets a session id name the conversation alone, unless a request says otherwise',
  async t => {
    const owner = await newClient()
    t.match((await owner.get(path)).body, { sessions: 'apart' })
    t.match((await owner.send('PUT', path, { body: { sessions: 'core' } })).body, {
      sessions: 'core',
    })
    const inChat = { 'x-session-id': 'chat-1' }
    const texts = ['I moved to Lisbon.', 'The safe is behind the mirror.']
    await owner.post('/v1/memory/ingest?wait=true', said(texts[0]!), inChat)
    const apart = { ...inChat, 'x-memory-sessions': 'apart' }
    await owner.post('/v1/memory/ingest?wait=true', said(texts[1]!), apart)
    const stored = (await owner.get('/v1/memory/list')).body.items
    t.same(
      stored.map(({ text }: { text: string }) => text),
      [texts[0]],
    )
    const question = said('Where did I move, to Lisbon?')
    const other = await owner.post('/v1/memory/prepare', question, { 'x-session-id': 'chat-2' })
    t.match(other.body.context, /I moved to Lisbon/)
    t.match((await owner.get('/v1/memory/sessions')).body.items, [{ session_id: 'chat-1' }])
    t.match((await owner.send('PUT', path, { body: { sessions: 'apart' } })).body, {
      sessions: 'apart',
    })
  },
)

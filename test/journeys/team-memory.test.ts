import t from 'tap'
import { buildAdmin } from '#test/support/start/admin.ts'
import {
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { removeCompletedJobs } from '#test/support/checks/alter-jobs.ts'
import { countRows, isStoredAnywhere, tablesHolding } from '#test/support/checks/observe.ts'
import { countOpenJobs, countOpenTurns } from '#test/support/checks/observe-jobs.ts'

// One story, told in order: each part goes on from where the one before it ended.

const model = await startTeamModel(t)
const backend = await createTestBackend(t, { env: model.env })
// Two processes as far as requests can tell: what one is told the other knows.
const here = await startTestApi(t, backend)
const there = await startTestApi(t, await createTestBackend(t, { config: backend.config }))
await startJobWorkers(backend)

const [grace, mallory] = [await buildAdmin(backend), await buildAdmin(backend)]
const admin = createTestClient(here.base, grace.key)
const stranger = createTestClient(here.base, mallory.key)

async function created(client: TestClient, path: string, body: object) {
  const answer = await client.post(path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

const { org_id: org } = await created(admin, '/v1/orgs', {
  name: 'Acme',
  processor_provider: 'openai',
  extract_model: 'large',
  classify_model: 'small',
})
const { org_id: other } = await created(stranger, '/v1/orgs', { name: 'Acme' })
const path = `/v1/orgs/${org}`
await admin.send('PUT', '/v1/account/provider-keys/openai', {
  body: { key: 'sk-of-the-owner-0123456789' },
})
for (const label of ['finance', 'people', 'launch']) await created(admin, `${path}/tags`, { label })

const roles: Record<string, string> = {}
const allowed = { board: ['*'], money: ['finance', 'launch'], staff: ['launch'] }
for (const [name, allowed_tags] of Object.entries(allowed))
  roles[name] = (await created(admin, `${path}/roles`, { name, allowed_tags })).role_id

const holds: Record<string, string[]> = {
  ann: ['board'],
  bob: ['money'],
  cat: ['staff'],
  dan: ['staff'],
  eve: ['money'],
  fay: [],
  gus: ['staff'],
  hal: ['money', 'staff'],
}
const names = Object.keys(holds)
const emailOf = (name: string): string => `${name}@acme.example`
const users: Record<string, string> = {}
const keys: Record<string, string> = {}
for (const name of names) {
  const role_ids = holds[name]!.map(role => roles[role]!)
  const { user_id } = await created(admin, `${path}/users`, { email: emailOf(name), role_ids })
  users[name] = user_id
  const { key_id } = await created(admin, `${path}/keys`, { team_member_id: emailOf(name) })
  keys[name] = key_id
}

const member = (name: string, base = here.base): TestClient => createTestClient(base, keys[name])

const turnsDone = (): Promise<void> =>
  waitUntil('every turn is finished', async () => (await countOpenTurns(backend)) === 0)

async function says(name: string, text: string): Promise<void> {
  const messages = [
    { role: 'user', content: text },
    { role: 'assistant', content: 'I see.' },
  ]
  const { status, body } = await member(name).post('/v1/memory/ingest', { messages })
  if (status !== 202) throw new Error(JSON.stringify(body))
}

/** What of the shared memory somebody finds, in order of the alphabet. */
async function finds(name: string, base = there.base): Promise<string[]> {
  const { status, body } = await member(name, base).post('/v1/memory/search', {
    query: 'budget launch office bonus merger wifi',
    limit: 50,
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  const rows = body.memories as { content: string; source: string }[]
  return rows
    .filter(({ source }) => source === 'org')
    .map(({ content }) => content)
    .sort()
}

async function finding(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const name of names) if (keys[name]) found[name] = await finds(name)
  return found
}

const budget = 'budget: 5 million #finance'
const launch = 'launch date: May 5 #launch'
const later = 'launch date: June 7 #launch'
const office = 'office: on the third floor'
const bonus = 'bonus: a month more ?people'
const merger = 'Came up: merger'

t.test('members talk to models, and the team remembers what is worth it', async t => {
  await admin.send('PUT', `${path}/instructions`, {
    body: {
      custom: 'Keep what floors things are on.',
      anti_rules: [{ match: 'password', note: 'nowhere' }],
      exec_rules: [{ match: 'merger', note: '' }],
    },
  })
  // Through the proxy, with the key that the owner has stored.
  const { status } = await member('ann').post('/v1/chat/completions', {
    model: 'openai/gpt-5-mini',
    messages: [{ role: 'user', content: `Good morning.\nFact: ${budget}` }],
  })
  t.equal(status, 200)
  await says('cat', `Fact: ${launch}`)
  await says('dan', `Fact: ${office}`)
  await says('hal', `Fact: ${bonus}`)
  await says('gus', 'Fact: wifi: the PASSWORD is pangolin')
  await says('bob', 'Fact: merger: Acme buys Initech for 9 billion')
  await waitUntil('the proxy has stored its exchange', async () => {
    return (await countRows(backend, 'org_turns')) === 6
  })
  await turnsDone()

  const everybodys = [merger, office]
  const staff = [...everybodys, launch].sort()
  const money = [...staff, budget].sort()
  t.same(await finding(), {
    ann: [...money, bonus].sort(),
    bob: money,
    cat: staff,
    dan: staff,
    eve: money,
    fay: everybodys,
    gus: staff,
    hal: money,
  })
  const { body } = await admin.get(`${path}/memories`)
  t.notMatch(JSON.stringify(body), /pangolin|Initech|billion/)
})

t.test('each keeps a private vault of which no other key finds anything', async t => {
  const privately = async (name: string): Promise<string> => {
    const { body } = await member(name).post('/v1/memory/search', { query: 'wifi', limit: 50 })
    const rows = body.memories as { source: string; content: string }[]
    return rows
      .filter(({ source }) => source !== 'org')
      .map(({ content }) => content)
      .join('\n')
  }
  t.match(await privately('gus'), /the PASSWORD is pangolin/)
  for (const name of names.filter(name => name !== 'gus'))
    t.notMatch(await privately(name), /pangolin/, name)
})

t.test('what goes before a model call holds what the member may see', async t => {
  const context = async (name: string): Promise<string> => {
    const messages = [{ role: 'user', content: 'What is the budget?' }]
    const { body } = await member(name).post('/v1/memory/prepare', { messages })
    return String(body.context)
  }
  t.match(await context('bob'), /budget: 5 million/)
  t.notMatch(await context('cat'), /5 million/)
})

t.test('the trail shows what each pass made of it, and what each was given', async t => {
  const { body } = await admin.get(`${path}/debug/passes?limit=200`)
  const entries = body.passes as { kind: string; author: string; created_at: number }[]
  t.same(
    entries.map(({ created_at }) => created_at),
    entries.map(({ created_at }) => created_at).toSorted((a, b) => b - a),
  )
  const writes = entries.filter(({ kind }) => kind === 'write')
  const authors = writes.map(({ author }) => author).sort()
  t.same(authors, ['ann', 'bob', 'cat', 'dan', 'gus', 'hal'].map(emailOf))
  t.match(
    writes.find(({ author }) => author === emailOf('ann')),
    {
      pass1: [{ text: budget, note: false }],
      pass2: [{ text: budget, tags: ['finance'], confidence: 0.9 }],
      pass3: [{ text: budget, action: 'ADD' }],
    },
  )
  const ofGus = writes.find(({ author }) => author === emailOf('gus'))
  t.match(ofGus, { pass1: [], pass3: [] })
  t.notMatch(JSON.stringify(entries), /pangolin|Initech/)

  await waitUntil('retrievals are told', async () => {
    const fays = await admin.get(`${path}/debug/passes?author=${emailOf('fay')}`)
    return fays.body.passes.some(
      (entry: { kind: string; dropped: number }) =>
        entry.kind === 'retrieval' && entry.dropped === 3,
    )
  })
  const { body: fays } = await admin.get(`${path}/debug/passes?author=${emailOf('fay')}`)
  t.match(fays.passes[0], { kind: 'retrieval', wildcard: false, permitted: 2, allowed_tags: [] })
  t.equal((await member('ann').get(`${path}/debug/passes`)).status, 401)
  t.equal((await stranger.get(`${path}/debug/passes`)).status, 404)
})

t.test('a person settles what the classifier doubts', async t => {
  const { body } = await admin.get(`${path}/memories/review`)
  t.match(body, {
    count: 1,
    review: [
      {
        text: bonus,
        tags: ['people'],
        confidence: 0.5,
        author: emailOf('hal'),
        pass: {
          pass1: [{ text: bonus }],
          pass2: [{ confidence: 0.5 }],
          pass3: [{ action: 'ADD' }],
        },
      },
    ],
  })
  const { mem_id } = body.review[0]
  const approved = await admin.post(`${path}/memories/${mem_id}/review`, {
    action: 'approve',
    tags: ['finance'],
  })
  t.match(approved, { status: 200, body: { tags: ['finance'], reviewed: true } })
  t.equal((await admin.get(`${path}/memories/review`)).body.count, 0)
  t.ok((await finds('hal')).includes(bonus))
  t.notOk((await finds('cat')).includes(bonus))
})

t.test('the team learns better: one memory changes, its history says who did it', async t => {
  await says('bob', `Fact: ${later}\nFact: ${office}`)
  await turnsDone()
  for (const name of ['ann', 'cat', 'gus']) {
    const found = await finds(name)
    t.ok(found.includes(later) && !found.includes(launch), name)
  }
  t.notOk((await finds('fay')).includes(later))
  const { body } = await admin.get(`${path}/debug/passes?author=${emailOf('bob')}&limit=200`)
  const last = body.passes.find(({ kind }: { kind: string }) => kind === 'write')
  t.match(last.pass3, [{ action: 'UPDATE' }, { action: 'NONE' }])
  const { mem_id } = last.pass3[0]
  const { body: history } = await admin.get(`${path}/memories/${mem_id}/audit`)
  t.match(history.events, [
    { action: 'update', actor: emailOf('bob') },
    { action: 'create', actor: emailOf('cat') },
  ])
})

t.test('roles, tags and keys count from the next request on, on every process', async t => {
  t.notOk((await finds('cat')).includes(budget))
  const assign = (name: string, ...held: string[]) =>
    admin.post(`${path}/role-assignments`, {
      team_member_id: emailOf(name),
      role_ids: held.map(role => roles[role]!),
    })
  await assign('cat', 'money')
  t.ok((await finds('cat')).includes(budget))
  await assign('cat')
  t.same(await finds('cat'), [merger, office])

  const rights = (allowed_tags: string[]) =>
    admin.send('PATCH', `${path}/roles/${roles.staff}`, { body: { allowed_tags } })
  await rights(['launch', 'finance'])
  t.ok((await finds('gus')).includes(budget))
  await rights(['launch'])
  t.notOk((await finds('gus')).includes(budget))

  const { body } = await admin.get(`${path}/keys?q=dan@`)
  await admin.send('DELETE', `${path}/keys/${body.keys[0].id}`)
  for (const base of [here.base, there.base])
    t.equal((await member('dan', base).get('/v1/memory/stats')).status, 401)
})

t.test('another organization sees, and reaches, nothing of it', async t => {
  const { key_id } = await created(stranger, `/v1/orgs/${other}/keys`, { team_member_id: 'zoe' })
  keys.zoe = key_id
  t.same(await finds('zoe'), [])
  for (const below of ['', '/memories', '/audit', '/users', '/keys', '/memories/review'])
    t.equal((await stranger.get(path + below)).status, 404, below)
  const { body } = await stranger.get('/v1/orgs')
  const ids = body.orgs.map(({ org_id }: { org_id: string }) => org_id)
  t.same(ids, [other])
})

/** Where in both stores a word still is. */
async function whereIs(word: string): Promise<string[]> {
  const places = await tablesHolding(backend, word)
  return (await isStoredAnywhere(backend, word)) ? [...places, 'memories'] : places
}

const nothingUnderWay = (): Promise<void> =>
  waitUntil('everything queued is done, and gone from the queue', async () => {
    if ((await countOpenJobs(backend)) > 0) return false
    await removeCompletedJobs(backend)
    return true
  })

t.test('a user who goes leaves nothing private behind', async t => {
  await says('eve', 'Fact: coffee: in the platypus room\nMy own secret is a quagga.')
  await turnsDone()
  t.same((await finds('bob')).filter(text => text.startsWith('coffee')).length, 1)
  t.not((await whereIs('quagga')).length, 0)
  const { status } = await admin.send('DELETE', `${path}/users/${users.eve}`)
  t.equal(status, 200)
  t.equal((await member('eve').get('/v1/memory/stats')).status, 401)
  delete keys.eve
  await nothingUnderWay()
  t.same(await whereIs('quagga'), [])
  const { body } = await admin.get(`${path}/debug/passes?author=${emailOf('eve')}&limit=200`)
  const writes = body.passes.filter(({ kind }: { kind: string }) => kind === 'write')
  t.same(writes, [])
  t.ok(
    (await finds('bob')).includes('coffee: in the platypus room'),
    'what she shared is the team’s',
  )
})

t.test('an organization that goes leaves nothing in either store', async t => {
  await says('bob', 'Fact: farewell: on the axolotl\nThe numbat is mine.')
  await turnsDone()
  t.equal((await admin.send('DELETE', path)).status, 200)
  for (const name of Object.keys(keys).filter(name => name !== 'zoe'))
    t.equal((await member(name).get('/v1/memory/stats')).status, 401, name)
  t.equal((await admin.get(path)).status, 404)
  await nothingUnderWay()
  for (const word of ['axolotl', 'numbat', 'platypus', 'million', 'pangolin', 'Initech'])
    t.same(await whereIs(word), [], word)
  // Who had access stays among the account's events, until the account goes.
  t.same(await whereIs('acme.example'), ['public.account_events'])
  for (const table of ['org_turns', 'org_users', 'org_tags', 'shared_writes'])
    t.equal(await countRows(backend, { table, org }), 0, table)
  t.equal(await countRows(backend, 'org_answers'), 0)
  t.same(await finds('zoe'), [])
  t.equal((await stranger.get(`/v1/orgs/${other}`)).status, 200, 'the other one is still there')
})

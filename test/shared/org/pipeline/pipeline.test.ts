import t, { type Test } from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories, type Team } from '#test/support/start/team.ts'
import { auditEventsOf, countRows } from '#test/support/checks/observe.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { backend, base, model, newTeam, finished } = await startTeamService(t)
const { query } = backend.postgres

const instruct = (org: string, defaultOn: boolean, custom: string) =>
  query(
    `insert into org_instructions (org, default_on, custom) values ($1, $2, $3)
     on conflict (org) do update set default_on = $2, custom = $3`,
    [org, defaultOn, custom],
  )

const rule = (org: string, kind: 'anti' | 'exec', match: string, note = '') =>
  query(
    `insert into org_rules (id, org, kind, position, match, note) values ($1, $2, $3, 0, $4, $5)`,
    [mintId(), org, kind, match, note],
  )

const auditOf = async ({ org }: Team): Promise<string[]> =>
  (await auditEventsOf(backend, org)).map(({ action, actor }) => `${action} by ${actor}`)

const textsOf = (rows: readonly { text: string }[] | null): string[] =>
  rows!.map(({ text }) => text)

t.beforeEach(model.reset)

t.test('what a member says becomes shared memory, tagged and recalled', async t => {
  const acme = await newTeam(['finance', 'launch'])
  const passes = await acme.share('Fact: launch: on May 5 #launch\nFact: floor: 3')
  t.match(passes.pass1, [{ text: 'launch: on May 5 #launch', note: false }, { text: 'floor: 3' }])
  t.match(passes.pass2, [
    { tags: ['launch'], confidence: 0.9 },
    { tags: [], confidence: 0.9 },
  ])
  t.match(passes.pass3, [{ action: 'ADD' }, { action: 'ADD' }])
  const [first, second] = await acme.memories()
  t.match(first, { author: 'ada@example.com', reviewed: false, tags: ['launch'] })
  t.match(second, { text: 'floor: 3', tags: [], confidence: 0.9 })
  const ids = passes.pass3!.map(({ mem_id }) => mem_id)
  t.same([first!.id, second!.id], ids)
  t.same(await auditOf(acme), ['create by ada@example.com', 'create by ada@example.com'])
  const calls = model.calls.map(({ pass, model }) => `${pass} ${model}`)
  t.same(calls, ['extract large', 'tag small'])
})

t.test('the next turn says it again, corrects it, or adds to it', async t => {
  const acme = await newTeam()
  await acme.share('Fact: launch: on May 5')
  const again = await acme.share('Fact: launch: on May 5')
  const { pass3 } = await acme.share('Fact: launch: on June 7\nFact: floor: 3')
  const [launch, floor] = await acme.memories()
  t.match(again.pass3, [{ action: 'NONE', mem_id: launch!.id }])
  t.match(pass3, [
    { action: 'UPDATE', mem_id: launch!.id },
    { action: 'ADD', mem_id: floor!.id },
  ])
  t.match(launch, { text: 'launch: on June 7', version: 2 })
  t.same(await auditOf(acme), [
    'create by ada@example.com',
    'update by ada@example.com',
    'create by ada@example.com',
  ])
})

t.test('a turn without facts ends there', async t => {
  const acme = await newTeam(['finance'])
  t.match(await acme.share('The weather is good today'), {
    pass1: [],
    pass2: [],
    pass3: [],
  })
  const calls = model.calls.map(({ pass }) => pass)
  t.same(calls, ['extract'])
  const { rows } = await query('select 1 from org_answers')
  t.same(rows, [], 'and nothing of what the model said is kept')
})

t.test('nothing of the model alone, of what is kept out, of keys that do not store', async t => {
  const acme = await newTeam()
  const messages = [{ role: 'user', content: 'Fact: secret: 1', memory: false }]
  const answer = { role: 'assistant', content: 'Fact: secret: 2' }
  await createTestClient(base, acme.key).post('/v1/memory/ingest', {
    messages: [...messages, answer],
  })
  const refused = await createTestClient(base, `${acme.key}:read`).post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'Fact: secret: 3' }],
  })
  t.match(refused, { status: 202, body: { accepted: false } })
  t.equal(await countRows(backend, { table: 'org_turns', org: acme.org }), 0)
})

t.test('a tag that may apply counts, and a person looks at it', async t => {
  const acme = await newTeam(['finance', 'people'])
  const { pass2 } = await acme.share('Fact: bonus: maybe ?people')
  t.match(pass2, [{ tags: ['people'], confidence: 0.5 }])
  const admin = createTestClient(base, acme.adminKey)
  const { body } = await admin.get(`/v1/orgs/${acme.org}/memories/review`)
  t.match(body.review, [{ tags: ['people'], confidence: 0.5, author: 'ada@example.com' }])
})

t.test('anti-rules: what they match is never sent and never stored', async t => {
  const acme = await newTeam()
  await rule(acme.org, 'anti', 'salary')
  const sent = await acme.share('Fact: pay: her SALARY is 100')
  t.same(sent.pass1, [])
  t.equal(model.count('extract'), 0, 'the model is not even shown it')

  const facts = [
    { turn: 0, text: 'Salaries, and her Sal\u00ADary is 100', note: false, confidence: 1 },
    { turn: 0, text: 'The floor is 3', note: false, confidence: 1 },
  ]
  model.scriptAnswers('extract', JSON.stringify({ facts }))
  const { pass1 } = await acme.share('The pay of Ada, and the floor')
  t.same(textsOf(pass1), ['The floor is 3'])
  t.match(model.calls[0]!.instructions, /"match":"salary"/)
  t.notMatch(textsOf(await acme.memories()).join(), /100/)

  model.scriptAnswers('reconcile', ({ userPrompt }) =>
    JSON.stringify({
      decisions: [
        { fact: 0, action: 'UPDATE', memory: userPrompt.memories[0].memory, text: 'Salary 9' },
      ],
    }),
  )
  await acme.share('Fact: The floor: 4')
  t.notMatch(textsOf(await acme.memories()).join(), /Salary 9/)
})

t.test('exec-rules: what they match is kept as a short note', async t => {
  const acme = await newTeam()
  await rule(acme.org, 'exec', 'merger', 'say only that it came up')
  const { pass1 } = await acme.share(
    `Fact: merger: Acme buys Initech for ${'9'.repeat(300)} million`,
  )
  t.same(pass1, [{ text: 'Came up: merger', confidence: 0.9, note: true }])
  const noted = await acme.share('Note: The board talks about a merger.')
  t.match(noted.pass1, [{ text: 'The board talks about a merger.', note: true }])
  // The words it is from count as well as its own.
  const facts = [{ turn: 0, text: 'Initech costs 5', note: false, confidence: 1 }]
  model.scriptAnswers('extract', JSON.stringify({ facts }))
  t.match((await acme.share('after the Merger it costs 5')).pass1, [{ text: 'Came up: merger' }])
})

t.test('instructions: the base, the organization’s own, both or neither', async t => {
  const acme = await newTeam()
  const custom = `Keep "recipes" {always}\n</instructions> ${'é'.repeat(10_000)}`
  const told = async (): Promise<string | undefined> => {
    model.calls.length = 0
    await acme.share('The weather is good today')
    return model.calls[0]?.instructions
  }
  t.match(await told(), /What is worth sharing/)
  await instruct(acme.org, true, custom)
  const both = await told()
  t.ok(both?.includes('What is worth sharing') && both.includes(custom))
  await instruct(acme.org, false, custom)
  const own = await told()
  t.ok(own?.includes(custom) && !own.includes('What is worth sharing'))
  await instruct(acme.org, false, ' ')
  t.equal(await told(), undefined, 'an organization that asks for nothing is asked nothing')
})

const providers = [
  ['anthropic', 'claude-large'],
  ['google', 'gemini-large'],
] as const
for (const [provider, name] of providers) {
  t.test(`${provider}: the same three passes, with the owner’s key`, async t => {
    const acme = await newTeam(['launch'])
    const owner = { account: acme.account, actor: 'test' }
    const key = `sk-of-${provider}-0123456789`
    await storeProviderKey({ query, seal: backend.seal }, owner, provider, key)
    await query(
      `update orgs set processor_provider = $2, extract_model = $3, classify_model = $3
       where id = $1`,
      [acme.org, provider, `${provider}/${name}`],
    )
    await acme.share('Fact: launch: on May 5 #launch')
    const { pass3 } = await acme.share('Fact: launch: on May 6 #launch')
    t.match(pass3, [{ action: 'UPDATE' }])
    const calls = [
      ...new Set(model.calls.map(({ dialect, key, model: of }) => `${dialect} ${of} ${key}`)),
    ]
    t.same(calls, [`${provider} ${name} ${key}`])
    const { rows } = await query(
      `select kind, model, sum(input_tokens)::int as input, sum(memory_tokens)::int as memory
       from usage_events where account = $1 and model is not null group by 1, 2 order by 1`,
      [acme.account],
    )
    t.same(rows, [
      { kind: 'org-extract', model: `${provider}/${name}`, input: 200, memory: 0 },
      { kind: 'org-reconcile', model: `${provider}/${name}`, input: 100, memory: 0 },
      { kind: 'org-tag', model: `${provider}/${name}`, input: 200, memory: 0 },
    ])
  })
}

t.test('what an admin changes meanwhile is not overwritten', async t => {
  const acme = await newTeam()
  const [id] = await seedTeamMemories(backend, acme, [
    { text: 'launch: on May 5', reviewed: false },
  ])
  const admin = createTestClient(base, acme.adminKey)
  const path = `/v1/orgs/${acme.org}/memories/${id}`
  model.scriptAnswers('reconcile', async ({ userPrompt }) => {
    const { status } = await admin.send('PATCH', path, { body: { text: 'launch: cancelled' } })
    t.equal(status, 200)
    const [{ memory }] = userPrompt.memories
    return JSON.stringify({
      decisions: [{ fact: 0, action: 'UPDATE', memory, text: 'launch: on May 6' }],
    })
  })
  const { pass3 } = await acme.share('Fact: launch: on May 6')
  // The decision was made on what is no longer there: it is made anew, on what the admin wrote.
  t.equal(model.count('reconcile'), 2)
  t.match(model.calls.at(-1)!.userPrompt.memories, [{ memory: 'm1', text: 'launch: cancelled' }])
  t.match(pass3, [{ action: 'ADD', replaces: id }])
})

t.test('a model that is away: the turn waits, and no answer is asked for twice', async t => {
  const acme = await newTeam(['launch'])
  const away = { status: 503 }
  // The SDK tries twice, and so does the job.
  model.scriptAnswers('tag', away, away, away)
  const { pass3 } = await acme.share('Fact: launch: on May 5 #launch')
  t.match(pass3, [{ action: 'ADD' }])
  t.same([model.count('extract'), model.count('tag')], [1, 4])
  t.same(await auditOf(acme), ['create by ada@example.com'])
})

t.test('turns of members who say the same at once are processed one after the other', async t => {
  const acme = await newTeam()
  const members = await Promise.all(['bob', 'cat', 'dan', 'eve'].map(name => acme.addMember(name)))
  const turns = await Promise.all(
    members.map(key => acme.say('Fact: launch: on May 5', { as: key })),
  )
  const passes = await Promise.all(turns.map(turn => finished(turn)))
  t.same(textsOf(await acme.memories()), ['launch: on May 5'])
  t.same(passes.map(({ pass3 }) => pass3![0]!.action).sort(), ['ADD', 'NONE', 'NONE', 'NONE'])
})

t.test('an update never changes who may see a memory', async t => {
  const acme = await newTeam(['finance'])
  const [open] = await seedTeamMemories(backend, acme, [
    { text: 'budget: to be told', reviewed: false },
  ])
  const { pass3 } = await acme.share('Fact: budget: 5 million #finance')
  t.match(pass3, [{ action: 'ADD' }])
  const rows = await acme.memories()
  const before = rows.find(({ id }) => id === open)
  t.match(before, { text: 'budget: to be told', tags: [] })
  const added = rows.find(({ id }) => id !== open)
  t.match(added, { tags: ['finance'] })
})

t.test('a tag that is deleted on the way opens nothing', async (t: Test) => {
  const acme = await newTeam(['finance'])
  model.scriptAnswers('tag', async ({ userPrompt }) => {
    await query('delete from org_tags where org = $1', [acme.org])
    const [{ id }] = userPrompt.questions
    return JSON.stringify({ facts: [{ fact: 0, answers: { [id]: 1 } }] })
  })
  await acme.share('Fact: budget: 5 million')
  t.match(await acme.memories(), [{ tags: ['finance'] }])
})

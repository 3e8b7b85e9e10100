import t from 'tap'
import { storeProviderKey, removeProviderKey } from '#shared/access/provider-key.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { storedDigests, storedDocuments } from '#test/support/checks/observe.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

const { backend, base, model, newTeam } = await startTeamService(t, { working: false })
const { query } = backend.postgres

t.beforeEach(model.reset)

const tries = async (team: WorkingTeam, body: object) => {
  const answer = await team.admin.post(`/v1/orgs/${team.org}/trial`, body)
  t.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

const userIn = async (team: WorkingTeam, name: string): Promise<string> => {
  const { body } = await team.admin.get(`/v1/orgs/${team.org}/users`)
  return body.users.find((user: { team_member_id: string }) => user.team_member_id === name).user_id
}

const found = { reviewed: false, confidence: 0.9 }

t.test('facts with their tags, what they change, and what waits for a person', async t => {
  const team = await newTeam(['finance', 'launch'])
  const [launch, floor, budget] = await seedTeamMemories(backend, team, [
    { text: 'launch: on May 5', ...found },
    { text: 'floor: 3', ...found },
    { text: 'budget: 5 million', tags: ['finance'] },
  ])
  const text = [
    'Fact: launch: on June 7',
    'Fact: floor: 3',
    'Fact: budget: 6 million #finance',
    'Fact: rocket: red ?launch',
    'Fact: salary of Eve: 90',
    'Note: a talk with the bank',
  ].join('\n')
  const answer = await tries(team, { text })
  t.match(answer, {
    org_id: team.org,
    team_member_id: null,
    read_as: text,
    not_asked: null,
    rule: null,
  })
  const [changed, repeated, replacing, doubtful, sensitive, note] = answer.facts
  t.match(changed, {
    text: 'launch: on June 7',
    outcome: 'changes',
    left_out_by: null,
    rule: null,
    note: false,
    tags: [],
    confidence: 0.9,
    pending: false,
    review: [],
    memories: [
      {
        mem_id: launch,
        text: 'launch: on May 5',
        new_text: 'launch: on June 7',
        author: team.email,
        tags: [],
      },
    ],
    answers: [
      { label: 'finance', likelihood: 0.03, applies: false },
      { label: 'launch', likelihood: 0.03, applies: false },
    ],
  })
  t.match(repeated, {
    outcome: 'repeats',
    confidence: null,
    memories: [{ mem_id: floor, new_text: null }],
  })
  t.match(replacing, {
    outcome: 'new',
    tags: ['finance'],
    confidence: 0.5,
    pending: true,
    review: ['replaces'],
    memories: [{ mem_id: budget, text: 'budget: 5 million' }],
  })
  t.match(doubtful, { outcome: 'new', tags: ['launch'], confidence: 0.5, review: ['unsure'] })
  t.match(doubtful.answers[1], { label: 'launch', likelihood: 0.5, applies: true })
  t.match(sensitive, { outcome: 'new', tags: [], pending: true, review: ['sensitive'] })
  t.match(note, { note: true, outcome: 'new', review: [] })
  t.match(answer.usage, {
    calls: 3,
    input_tokens: 300,
    cached_input_tokens: 120,
    output_tokens: 60,
  })
})

t.test('nothing but the cost is written, and the pipeline then decides the same', async t => {
  const team = await newTeam(['finance'])
  await seedTeamMemories(backend, team, [{ text: 'launch: on May 5', ...found }])
  const stored = async () => [
    await storedDigests(backend),
    await storedDocuments(backend, team.vault),
  ]
  const before = await stored()
  const user_id = await userIn(team, 'ada@example.com')
  await tries(team, { text: 'Fact: launch: on June 7\nFact: wall: blue #finance', user_id })
  const [digests, documents] = await stored()
  t.same(documents, before[1])
  const changed = Object.entries(digests!).flatMap(([name, digest]) =>
    (before[0] as Record<string, string>)[name] === digest ? [] : [name],
  )
  const bills = new Set([
    'org_usage',
    'usage_events',
    'usage_daily',
    'usage_accounts',
    'accounts',
    'vaults',
  ])
  t.same(
    changed.filter(name => !bills.has(name.replace('public.', ''))),
    [],
  )
  const { body } = await team.admin.get(`/v1/orgs/${team.org}/usage`)
  t.match(body, { by_pass: { trial: { calls: 3 } }, by_member: { [team.email]: { calls: 3 } } })
  const own = await createTestClient(base, team.key).get('/v1/account/usage')
  t.equal(own.body.total_requests, 0, 'no activity of the member')
})

t.test('as a member: compared with what they may see', async t => {
  const team = await newTeam(['finance'])
  await team.addMember('out@example.com')
  const [hidden] = await seedTeamMemories(backend, team, [
    { text: 'budget: 5 million', tags: ['finance'], ...found },
  ])
  const text = 'Fact: budget: 6 million #finance'
  const as = async (name: string) => {
    const answer = await tries(team, { text, user_id: await userIn(team, name) })
    t.equal(answer.team_member_id, name)
    return answer.facts[0]
  }
  t.match(await as('ada@example.com'), { outcome: 'changes', memories: [{ mem_id: hidden }] })
  t.equal(model.calls.at(-1)!.userPrompt.member, 'ada@example.com')
  const unseen = await as('out@example.com')
  t.match(unseen, { outcome: 'new', review: ['unseen'], memories: [], pending: false })
})

t.test('what is left out says by what, before and after a model is asked', async t => {
  const team = await newTeam(['finance'])
  const path = `/v1/orgs/${team.org}`
  const anti_rules = [{ id: crypto.randomUUID(), match: 'salary', note: '' }]
  const text = 'Fact: salary of Eve: 90'
  const notAsked = async (body: object, reason: string) => {
    const { not_asked, facts, usage, rule } = await tries(team, body)
    t.match({ not_asked, facts, calls: usage.calls }, { not_asked: reason, facts: [], calls: 0 })
    return rule
  }
  t.equal(await notAsked({ text, instructions: { anti_rules } }, 'anti_rule'), 'salary')
  await notAsked({ text: 'Thank you!' }, 'states_nothing')
  await notAsked({ text, instructions: { default_on: false } }, 'instructions')
  t.equal(model.calls.length, 0)
  model.scriptAnswers('extract', ({ userPrompt }) => {
    const texts = [
      'the salary is high',
      'floor: 3',
      'maybe: so',
      'card: 4111 1111 1111 1111',
      'floor:  3 ',
    ]
    const facts = texts.map((text, index) => {
      return {
        turn: userPrompt.turns[0].turn,
        text,
        note: false,
        confidence: index === 2 ? 0.1 : 0.9,
      }
    })
    return JSON.stringify({ facts })
  })
  await team.admin.send('PUT', `${path}/policy`, {
    body: { redaction: { mode: 'block', kinds: ['card'] } },
  })
  const { facts } = await tries(team, { text: 'Fact: pay', instructions: { anti_rules } })
  t.same(
    facts.map((fact: Record<string, unknown>) => [
      fact.text,
      fact.outcome,
      fact.left_out_by,
      fact.rule,
    ]),
    [
      ['floor: 3', 'new', null, null],
      ['the salary is high', 'left_out', 'anti_rule', 'salary'],
      ['maybe: so', 'left_out', 'unsure', null],
      ['card: 4111 1111 1111 1111', 'left_out', 'redaction', null],
    ],
  )
  t.equal((await tries(team, { text: 'my card 4111 1111 1111 1111' })).read_as, null)
  await notAsked({ text: 'my card 4111 1111 1111 1111' }, 'redaction')
  t.match((await team.admin.get(`${path}/instructions`)).body, { anti_rules: [] }, 'a draft alone')
})

t.test('a draft of a tag is asked beside the saved ones, or in place of one', async t => {
  const team = await newTeam(['finance'])
  const text = 'Fact: paint: blue #decor'
  const draft = { label: 'decor', examples: ['The wall is red.'], negatives: ['The sky is blue.'] }
  const { facts } = await tries(team, { text, tag: draft })
  t.match(facts[0], { tags: ['decor'], answers: [{ label: 'finance' }, { label: 'decor' }] })
  const asked = () => model.calls.find(({ pass }) => pass === 'tag')!.userPrompt.questions
  t.match(asked()[1], { tag: 'decor', question: 'Is this about decor?', yes: draft.examples })
  model.reset()
  await tries(team, { text, tag: { label: 'finance', question: 'Is it money?' } })
  t.match(asked(), [{ tag: 'finance', question: 'Is it money?' }])
  t.equal((await team.admin.get(`/v1/orgs/${team.org}/tags`)).body.tags.length, 1)
  const instructions = {
    default_on: true,
    custom: 'Keep colours.',
    exec_rules: [{ id: crypto.randomUUID(), match: 'paint', note: 'no colours' }],
  }
  const asNote = await tries(team, { text, instructions })
  t.match(asNote.facts[0], { text: 'Came up: paint', note: true })
  const prompt = model.calls.findLast(({ pass }) => pass === 'extract')!.instructions
  t.match(prompt, /Keep colours\.[^]*"match":"paint","note":"no colours"/)
})

t.test('refusals say what to change', async t => {
  const team = await newTeam()
  const other = await newTeam()
  const path = `/v1/orgs/${team.org}/trial`
  const text = 'Fact: floor: 3'
  const refused = async (body: object, status: number, error: RegExp, hint: RegExp) =>
    t.match(await team.admin.post(path, body), { status, body: { error, hint } })
  await refused({ text: ' \n ' }, 400, /text holds no words/, /might say/)
  t.match(await team.admin.post(path, { text: '' }), { status: 400, body: { error: /text/ } })
  await refused({ text, user_id: team.org }, 404, /No such user/, /users/)
  const stranger = await userIn(other, 'ada@example.com')
  await refused({ text, user_id: stranger }, 404, /No such user/, /users/)
  await refused({ text, instructions: { anti_rules: [{ match: '\u200b' }] } }, 400, /no words/, /./)
  await refused({ text, tag: { label: '*' } }, 400, /must not be \*/, /./)
  model.failAll(401)
  await refused({ text }, 502, /openai\/large did not answer \(status 401\)/, /provider key/)
  model.failAll(null)
  model.scriptAnswers('extract', 'no JSON')
  await refused({ text }, 502, /of no use/, /Try again/)
  const [asked, open] = [Promise.withResolvers<void>(), Promise.withResolvers<null>()]
  model.scriptAnswers('extract', () => {
    asked.resolve()
    return open.promise
  })
  const first = team.admin.post(path, { text })
  await asked.promise
  await refused({ text }, 409, /Another trial/, /Wait/)
  open.resolve(null)
  t.equal((await first).status, 200)
  await team.admin.send('PATCH', `/v1/orgs/${team.org}`, { body: { daily_token_budget: 1 } })
  await refused({ text }, 409, /tokens of the day/, /daily_token_budget/)
  const keys = { query, seal: backend.seal }
  const actor = { account: other.account, actor: 'test' }
  await removeProviderKey(keys, actor, 'openai')
  t.match(await other.admin.post(`/v1/orgs/${other.org}/trial`, { text }), {
    status: 400,
    body: { error: /no key for openai/, hint: /provider-keys\/openai/ },
  })
  await storeProviderKey(keys, actor, 'openai', 'sk-0123456789abcdef')
  t.equal((await other.admin.post(path, { text })).status, 404, 'of another admin')
  t.equal((await createTestClient(base, team.key).post(path, { text })).status, 401)
})

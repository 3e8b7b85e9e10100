import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { createTestClient } from '#test/support/start/api.ts'
import type { Team } from '#test/support/start/team.ts'
import { createPasses, startTeamService } from '#test/support/start/working-team.ts'
import { setOperation } from '#test/support/checks/alter-jobs.ts'

// No worker runs: passes are run by hand, so that rules can change between them.
const service = await startTeamService(t, { working: false })
const { backend, base, model, newTeam } = service
const { extract, tag, reconcile, run, said } = createPasses(service)
const { query } = backend.postgres

t.beforeEach(model.reset)

const rule = ({ org }: Team, kind: 'anti' | 'exec', match: string) =>
  query(
    `insert into org_rules (id, org, kind, position, match, note)
     select $1, $2, $3, count(*), $4, '' from org_rules where org = $2 and kind = $3`,
    [mintId(), org, kind, match],
  )

/** The jobs of what a new member says, in the order it was said. */
const saidBy = async (team: Team, content: string | object[]) =>
  said(await team.addMember(`${mintId()}@example.com`), content)

const saidOnce = async (team: Team, content: string) => (await saidBy(team, content))[0]

const textsOf = (rows: readonly { text: string }[] | null): string[] =>
  (rows ?? []).map(({ text }) => text)

const fact = (text: string, rest: object = {}) => ({
  turn: 0,
  text,
  note: false,
  confidence: 0.9,
  ...rest,
})

t.test('of more facts than fit the first are kept, and the prompt says how many do', async t => {
  const team = await newTeam()
  const facts = Array.from({ length: 51 }, (_, n) => fact(`floor ${n}: ${n}`))
  model.scriptAnswers('extract', JSON.stringify({ facts: [fact('floor 0: 0'), ...facts] }))
  const { pass1 } = await extract(await saidOnce(team, 'Everything'))
  const first = facts.slice(0, 50).map(({ text }) => text)
  t.same(textsOf(pass1), first)
  t.equal(model.count('extract'), 1)
  t.match(model.calls[0]!.instructions, /more than 50 facts/)
})

t.test('a long exchange: every turn of it is looked through, each by a job of its own', async t => {
  const team = await newTeam()
  const messages = Array.from({ length: 30 }, (_, n) => ({
    role: 'user',
    content: `Fact: floor ${n}: ${n}\n${'x'.repeat(9_000)}`,
    timestamp: 1_700_000_000_000 + n * 1_000,
  }))
  const jobs = await saidBy(team, messages)
  t.equal(jobs.length, 3)
  for (const job of jobs) await run(job)
  const shared = await team.memories()
  t.same(textsOf(shared).toSorted(), messages.map((_, n) => `floor ${n}: ${n}`).toSorted())
  t.same(
    [...new Set(shared.map(({ acquiredAt }) => acquiredAt - 1_700_000_000_000))].sort(
      (a, b) => a - b,
    ),
    [9_000, 19_000, 29_000],
  )
  const admin = createTestClient(base, team.adminKey)
  const { body } = await admin.get(`/v1/orgs/${team.org}/debug/passes`)
  t.same(
    body.passes.map(({ left_out, pass1 }: { left_out: number; pass1: [] }) => [
      left_out,
      pass1.length,
    ]),
    [
      [0, 10],
      [0, 10],
      [0, 10],
    ],
  )
})

t.test('what is left out is reported; what is cancelled is cancelled whole', async t => {
  const team = await newTeam()
  const jobs = await saidBy(
    team,
    Array.from({ length: 20 }, () => ({ role: 'user', content: 'y'.repeat(13_000) })),
  )
  t.ok(jobs.length > 1)
  const admin = createTestClient(base, team.adminKey)
  const { body } = await admin.get(`/v1/orgs/${team.org}/debug/passes`)
  const told = body.passes.map(({ left_out }: { left_out: number }) => left_out)
  const sum = told.reduce((sum: number, one: number) => sum + one, 0)
  t.equal(sum, 20_000)
  const { operation } = jobs.at(-1)!
  t.equal(operation, jobs[0].turn)
  await setOperation(backend, operation!, { state: 'cancelled' })
  for (const job of jobs) t.match(await run(job), { pass1: [], finished: true })
  t.equal(model.calls.length, 0)
})

t.test('what was said long ago is of that time', async t => {
  const team = await newTeam()
  const timestamp = Date.UTC(2020, 1, 29, 12)
  const [job] = await saidBy(team, [
    { role: 'user', content: 'Fact: floor: 3', timestamp },
    { role: 'assistant', content: 'I see', timestamp: timestamp + 60_000 },
  ])
  await run(job)
  t.equal(model.calls[0]!.userPrompt.said_on, '2020-02-29')
  t.match(await team.memories(), [{ text: 'floor: 3', acquiredAt: timestamp }])
  const admin = createTestClient(base, team.adminKey)
  const { body } = await admin.get(`/v1/orgs/${team.org}/debug/passes`)
  t.ok(Date.now() - body.passes[0].created_at < 3_600_000, 'the turn itself is of today')
})

t.test('the words of a turn count for all its facts only when none is a note', async t => {
  const team = await newTeam()
  await rule(team, 'exec', 'merger')
  const words = 'After the merger Initech costs 5. The launch is on May 5. Ada owns the site.'
  const others = [fact('The launch is on May 5'), fact('Ada owns the site')]
  const keptOf = async (...facts: object[]) => {
    model.scriptAnswers('extract', JSON.stringify({ facts }))
    return textsOf((await extract(await saidOnce(team, words))).pass1)
  }
  const note = fact('The board talks about Initech.', { note: true })
  t.same(await keptOf(others[0]!, note, others[1]!), [
    'The launch is on May 5',
    'The board talks about Initech.',
    'Ada owns the site',
  ])
  t.same(await keptOf(fact('After the merger it costs 5'), ...others), [
    'Came up: merger',
    'The launch is on May 5',
    'Ada owns the site',
  ])
  t.same(await keptOf(fact('Initech costs 5'), ...others), ['Came up: merger'])

  model.scriptAnswers(
    'extract',
    JSON.stringify({ facts: [note, fact('Initech costs 5', { turn: 1 })] }),
  )
  const [job] = await saidBy(team, [
    { role: 'user', content: 'A merger, they say.' },
    { role: 'assistant', content: 'I see' },
    { role: 'user', content: 'The merger is on.' },
  ])
  const { pass1 } = await extract(job)
  t.same(
    textsOf(pass1),
    [note.text, 'Came up: merger'],
    'a note of one turn says nothing of another',
  )
})

t.test('a rule that comes while a fact is on its way holds for it', async t => {
  const team = await newTeam()
  const job = await saidOnce(
    team,
    'Fact: merger: Acme buys Initech for 5\nFact: mergers: two\nFact: floor: 3\nNote: A merger is on.',
  )
  await extract(job)
  await tag(job)
  await rule(team, 'exec', 'merger')
  await rule(team, 'anti', 'floor')
  const { pass3 } = await reconcile(job)
  t.same(textsOf(await team.memories()), ['Came up: merger', 'A merger is on.'])
  const actions = pass3!.map(({ action }) => action)
  t.same(actions, ['ADD', 'NONE', 'NONE', 'ADD'])
})

/** Makes a tag. @returns its id. */
async function newTag(team: Team, label: string): Promise<string> {
  const id = mintId()
  await query('insert into org_tags (id, org, label, question) values ($1, $2, $3, $3)', [
    id,
    team.org,
    label,
  ])
  return id
}

t.test('a tag that is gone stays closed, also when another one is called so by now', async t => {
  const team = await newTeam()
  const gone = await newTag(team, 'finance')
  const job = await saidOnce(team, 'Fact: budget: 5 million #finance')
  await extract(job)
  await tag(job)
  await query('delete from org_tags where id = $1', [gone])
  await newTag(team, 'finance')
  await reconcile(job)
  t.match(await team.memories(), [{ tags: [gone] }])
})

t.test('a fact has the label that its tag has when it is written', async t => {
  const team = await newTeam()
  const finance = await newTag(team, 'finance')
  await run(await saidOnce(team, 'Fact: launch: May 5'))
  const job = await saidOnce(team, 'Fact: launch: May 6 #finance')
  await extract(job)
  await tag(job)
  const before = model.count('reconcile')
  model.scriptAnswers('reconcile', async () => {
    await query(`update org_tags set label = 'money' where id = $1`, [finance])
    await newTag(team, 'finance')
    return null
  })
  await reconcile(job)
  t.ok(model.count('reconcile') > before)
  t.match(await team.memories(), [{ tags: [] }, { tags: ['money'] }])
})

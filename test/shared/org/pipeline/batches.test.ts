import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { auditEventsOf } from '#test/support/checks/observe.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

const { base, backend, model, newTeam, finished } = await startTeamService(t, {
  // Nothing is asked about before all of it is said.
  env: { ORG_GATHER_SECONDS: '600' },
})

const day = 24 * 3600 * 1000
const monday = Date.UTC(2026, 2, 2)

type Said = { text: string; timestamp?: number; session?: string; as?: string }

/** Ingests exchanges, and ends the time for which they wait for others. @returns their turns. */
async function sayAll(team: WorkingTeam, said: readonly Said[]): Promise<string[]> {
  const turns = await sayWaiting(team, said)
  const bySession = Map.groupBy(said.keys(), n => `${said[n]!.as} ${said[n]!.session}`)
  // The first takes the others along; one whose own job was being fetched just then would go by itself.
  const firsts = [...bySession.values()].map(([n]) => turns[n!]!)
  await makeJobsDue(backend, 'org-extract', firsts)
  return turns
}

/** Ingests exchanges one after the other. @returns their turns. */
async function sayWaiting(team: WorkingTeam, said: readonly Said[]): Promise<string[]> {
  const turns: string[] = []
  for (const { text, timestamp, session, as = team.key } of said) {
    const at = timestamp === undefined ? {} : { timestamp }
    const messages = [
      { role: 'user', content: text, ...at },
      { role: 'assistant', content: 'I see.', ...at },
    ]
    const { body } = await createTestClient(base, as).post('/v1/memory/ingest', {
      messages,
      ...(session !== undefined && { session_id: session }),
    })
    turns.push(body.operation_id as string)
  }
  return turns
}

const callsOf = (): Record<string, number> =>
  Object.fromEntries(
    (['extract', 'tag', 'reconcile'] as const).map(pass => [pass, model.count(pass)]),
  )

t.beforeEach(model.reset)

t.test('exchanges of one session within seconds: one call a pass, each its own day', async t => {
  const acme = await newTeam(['launch'])
  const turns = await sayAll(acme, [
    { text: 'Fact: atlas: in May #launch', timestamp: monday },
    { text: 'Thanks!', timestamp: monday + 1 },
    { text: 'Fact: borealis: in June', timestamp: monday + day },
    { text: 'Fact: cedar: green', timestamp: monday + 2 * day },
  ])
  for (const turn of turns) await finished(turn)
  t.same(callsOf(), { extract: 1, tag: 1, reconcile: 0 })
  const { userPrompt } = model.calls[0]!
  const days = userPrompt.turns.map(({ said_on = userPrompt.said_on }) => said_on)
  t.same(days, ['2026-03-02', '2026-03-03', '2026-03-04'], 'what states nothing is not shown')
  const memories = await acme.memories()
  t.same(memories.map(({ text, tags, acquiredAt }) => [text, tags, acquiredAt]).toSorted(), [
    ['atlas: in May #launch', ['launch'], monday],
    ['borealis: in June', [], monday + day],
    ['cedar: green', [], monday + 2 * day],
  ])
})

t.test('a later exchange of a batch that changes what an earlier one says', async t => {
  const acme = await newTeam()
  const turns = await sayAll(acme, [
    { text: 'Fact: launch: in May', timestamp: monday },
    { text: 'Fact: launch: in June', timestamp: monday + day },
    { text: 'Fact: launch: in July', timestamp: monday + 2 * day },
  ])
  for (const turn of turns) await finished(turn)
  t.equal(model.count('extract'), 1)
  t.match(await acme.memories(), [
    { text: 'launch: in July', acquiredAt: monday + 2 * day, version: 3 },
  ])
  t.equal((await acme.memories()).length, 1)
  const actions = (await auditEventsOf(backend, acme.org)).map(({ action }) => action)
  t.same(actions, ['create', 'update', 'update'])
})

t.test('members and sessions are asked about apart', async t => {
  const acme = await newTeam()
  const bob = await acme.addMember('bob@example.com')
  const turns = await sayAll(acme, [
    { text: 'Fact: floor: 3', session: 'one' },
    { text: 'Fact: roof: red', session: 'two' },
    { text: 'Fact: door: blue', session: 'one', as: bob },
  ])
  for (const turn of turns) await finished(turn)
  t.same(
    model.calls
      .filter(({ pass }) => pass === 'extract')
      .map(({ userPrompt }) => `${userPrompt.member} ${userPrompt.turns.length}`)
      .toSorted(),
    ['ada@example.com 1', 'ada@example.com 1', 'bob@example.com 1'],
  )
  const authors = (await acme.memories()).map(({ text, author }) => `${text} ${author}`)
  t.same(authors.toSorted(), [
    'door: blue bob@example.com',
    'floor: 3 ada@example.com',
    'roof: red ada@example.com',
  ])
})

t.test('an exchange that makes the answer useless holds up no other', async t => {
  const acme = await newTeam()
  const poison = 'a sentence that breaks the answer'
  const answer = ({ userPrompt }: { userPrompt: unknown }) =>
    JSON.stringify(userPrompt).includes(poison) ? 'no JSON at all' : (null as unknown as string)
  model.scriptAnswers('extract', ...Array.from({ length: 40 }, () => answer))
  const [first, bad, last] = await sayAll(acme, [
    { text: 'Fact: floor: 3' },
    { text: poison },
    { text: 'Fact: roof: red' },
  ])
  await finished(first!)
  await finished(last!)
  t.same((await acme.memories()).map(({ text }) => text).toSorted(), ['floor: 3', 'roof: red'])
  model.scriptAnswers('extract')
  await makeJobsDue(backend, 'org-extract')
  await finished(bad!)
})

t.test('an exchange that the provider refuses holds up no other', async t => {
  const acme = await newTeam()
  const banned = 'a sentence against the rules of the provider'
  const refusal = { status: 400, message: 'content policy' }
  const answer = ({ userPrompt }: { userPrompt: unknown }) =>
    JSON.stringify(userPrompt).includes(banned) ? refusal : (null as unknown as string)
  model.scriptAnswers('extract', ...Array.from({ length: 200 }, () => answer))
  const [, bad] = await sayAll(acme, [
    { text: 'Fact: floor: 3' },
    { text: banned },
    { text: 'Fact: roof: red' },
  ])
  // Those that wait for the provider are woken, as its admin would.
  const wake = () => acme.admin.post(`/v1/orgs/${acme.org}/pipeline/redrive`)
  const areShared = async () => (await wake()) && (await acme.memories()).length === 2
  await waitUntil('the others are shared', areShared)
  t.same((await acme.memories()).map(({ text }) => text).toSorted(), ['floor: 3', 'roof: red'])
  model.scriptAnswers('extract')
  await wake()
  await finished(bad!)
})

t.test('a cleared session takes its exchanges out of a batch that waits', async t => {
  const acme = await newTeam()
  const [turn] = await sayWaiting(acme, [
    { text: 'Fact: floor: 3', session: 'gone' },
    { text: 'Fact: roof: red', session: 'gone' },
  ])
  const { status } = await createTestClient(base, acme.key).send(
    'DELETE',
    '/v1/memory?session_id=gone',
  )
  t.ok(status < 300, String(status))
  const [other] = await sayAll(acme, [{ text: 'Fact: door: blue' }])
  await finished(other!)
  const texts = (await acme.memories()).map(({ text }) => text)
  t.same(texts, ['door: blue'])
  t.ok(turn)
})
